"""What `nvidia-smi` says about a host's GPUs, as the data files that its stand-in reads.

One table, `nvidia-smi.yml`, gives the XML report, the text report and the CSV fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from . import pci
from . import smi_layout as layout
from .hardware import Driver, Gpus, Hardware, gpu_uuid, invented
from .tree import File, Tree

DATA = "/usr/lib/lab/nvidia-smi"


@dataclass(frozen=True, slots=True)
class Row:
    """One value or group of the report; "" in `element` or `label`: not in that form."""

    element: str
    label: str
    value: str = ""
    fields: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


@cache
def table() -> tuple[Row, ...]:
    """Return the report's rows."""
    text = files(__package__).joinpath("nvidia-smi.yml").read_bytes()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(_row(*item) for item in yaml.load(text, Loader=loader))  # noqa: S506


def _row(element: str, label: str | None, value: Any, fields: str = "") -> Row:  # noqa: ANN401 - YAML
    if isinstance(value, list):
        return Row(element, label or "None", rows=tuple(_row(*item) for item in value))
    return Row(element, "None" if label is None else label, str(value), tuple(fields.split()))


def data(hardware: Hardware) -> Tree:
    """Return the data files of the `nvidia-smi` stand-in; none without a driver."""
    if not (hardware.driver and hardware.gpus):
        return {}
    words = [
        values(hardware.driver, hardware.gpus, hardware.name, index)
        for index in range(len(hardware.slots))
    ]
    named = {
        **_reports(hardware.driver, words),
        **layout.lists(hardware.gpus, hardware.name),
        "table": layout.banner(hardware.driver, words),
        "query": _query(hardware.driver, words),
        "topo-m": layout.topology(hardware),
        "topo-p2p": layout.peers(len(hardware.slots)),
        "version": layout.version(hardware.driver),
    }
    return {f"{DATA}/{name}": File(text) for name, text in named.items()}


def values(driver: Driver, gpus: Gpus, host: str, index: int) -> dict[str, str]:
    """Return the words for the templates of one GPU: healthy and idle, but for what is described.

    Temperatures in °C, power in W, memory in MiB.
    """
    slot = gpus.slots[index]
    bus = pci.bus_id(slot.pci)
    words = {
        "host": host, "index": index, "product": gpus.product, "architecture": gpus.architecture,
        "driver": driver.version, "persistence": "Enabled" if driver.persistence else "Disabled",
        "mig": gpus.mig, "mig_pending": gpus.mig, "mig_devices": "\n\t\t\tNone\n\t\t",
        "serial": 1650000000000 + int(invented(host, "serial", index)[:8], 16),
        "uuid": gpu_uuid(host, index), "pdi": f"0x{invented(host, 'pdi', index)[:16]}",
        "vbios": gpus.vbios, "board": f"0x{int(bus[9:11], 16) * 256:x}", "module": index + 1,
        "fabric_guid": f"0x{invented(host, 'fabric', index)[:16]}",
        "device_id": gpus.device_id, "subsystem_id": gpus.subsystem_id, "recovery_action": "None",
        "addressing_mode": "HMM",
        "bus_id": bus, "pci_domain": bus[4:8], "pci_bus": bus[9:11], "pci_device": bus[12:14],
        "link_gen": 6, "link_width": "16x", "hw_slowdown": "Not Active",
        "hw_thermal_slowdown": "Not Active", "hw_power_brake": "Not Active",
        "memory_total": gpus.memory_mib, "memory_reserved": gpus.reserved_mib, "memory_used": 0,
        "memory_free": gpus.memory_mib - gpus.reserved_mib, "compute_mode": "Default",
        "compute_capability": gpus.compute_capability, "utilization": "0 %",
        "ecc_corrected": 0, "ecc_uncorrected": 0, "ecc_corrected_lifetime": 0,
        "ecc_uncorrected_lifetime": 0, "sram_threshold_exceeded": "No",
        "channel_repair_pending": "No", "tpc_repair_pending": "No", "unrepairable_memory": "No",
        "remap_correctable": 0, "remap_uncorrectable": 0, "remap_pending": "No",
        "remap_failure": "No", "remap_max": 3072, "remap_high": 0, "remap_none": 0,
        "temperature": 30 + index % 4, "temperature_margin": 55 - index % 4,
        "temperature_memory": 31 + index % 3, "power_draw": f"{139 + index % 5}.{index}4",
        "power_limit": f"{gpus.power_w}.00", "power_default": f"{gpus.power_w}.00",
        "power_minimum": f"{gpus.minimum_power_w}.00",
        "sm_clock": gpus.sm_mhz, "memory_clock": gpus.memory_mhz,
        "processes": "\n\t\t", "accounted_processes": "\n\t\t", "supported_clocks": _clocks(gpus),
        "fabric_state": "N/A", "fabric_status": "N/A",
    }  # fmt: skip
    known = {**words, **gpus.values, **slot.values}
    return {**_fabric(str(known["fabric_state"])), **{k: str(v) for k, v in known.items()}}


def _fabric(state: str) -> dict[str, str]:
    """Return what the driver says of the fabric once a GPU has joined it, and before."""
    joined = state == "Completed"
    return {
        "fabric_clique": "0" if joined else "N/A",
        "fabric_cluster": "00000000-0000-0000-0000-000000000000" if joined else "N/A",
        "fabric_health": "Healthy" if joined else "N/A",
        "fabric_bandwidth": "Full" if joined else "N/A",
        "fabric_trouble": "False" if joined else "N/A",
        "fabric_configuration": "None" if joined else "N/A",
    }


def _clocks(gpus: Gpus) -> str:
    """Return the clocks that a GPU supports, as the XML report nests them."""
    steps = range(gpus.sm_mhz, 344, -15)
    lines = [
        line
        for memory in (gpus.memory_mhz, gpus.memory_mhz - 1000)
        for line in (
            "<supported_mem_clock>",
            f"\t<value>{memory} MHz</value>",
            *(f"\t<supported_graphics_clock>{mhz} MHz</supported_graphics_clock>" for mhz in steps),
            "</supported_mem_clock>",
        )
    ]
    return "\n" + "\n".join(f"\t\t\t{line}" for line in lines) + "\n\t\t"


def _reports(driver: Driver, gpus: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the XML and text reports in pieces: a head, one a GPU, a tail."""
    count = len(gpus)
    found = {
        "q-x.head": (
            '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'
            f"<nvidia_smi_log>\n\t<timestamp>{layout.NOW}</timestamp>\n"
            f"\t<driver_version>{driver.version}</driver_version>\n"
            f"\t<cuda_version>{driver.cuda}</cuda_version>\n"
            f"\t<attached_gpus>{count}</attached_gpus>\n"
        ),
        "q-x.tail": "</nvidia_smi_log>\n",
        "q.head": "\n==============NVSMI LOG==============\n\n"
        + "".join(
            f"{label:<42}: {value}\n"
            for label, value in (
                ("Timestamp", layout.NOW),
                ("Driver Version", driver.version),
                ("CUDA Version", driver.cuda),
            )
        )
        + f"\n{'Attached GPUs':<42}: {count}\n",
        "q.tail": "",
    }
    for index, words in enumerate(gpus):
        xml = "\n".join(line for row in table() for line in _xml(row, words, "\t\t"))
        text = "\n".join(line for row in table() for line in _text(row, words, "    "))
        found[f"q-x.{index}"] = f'\t<gpu id="{words["bus_id"]}">\n{xml}\n\t</gpu>\n\n'
        found[f"q.{index}"] = f"GPU {words['bus_id']}\n{text}\n\n"
    return found


def _xml(row: Row, words: Mapping[str, str], indent: str) -> Iterator[str]:
    if not row.element:
        return
    if not row.rows:
        yield f"{indent}<{row.element}>{row.value.format_map(words)}</{row.element}>"
        return
    yield f"{indent}<{row.element}>"
    for inner in row.rows:
        yield from _xml(inner, words, indent + "\t")
    yield f"{indent}</{row.element}>"


def _text(row: Row, words: Mapping[str, str], indent: str) -> Iterator[str]:
    if not row.label:
        return
    if not row.rows:
        value = row.value.format_map(words)
        yield f"{indent + row.label:<42}: {value.strip() or 'None'}"
        return
    yield f"{indent}{row.label}"
    for inner in row.rows:
        yield from _text(inner, words, indent + "    ")


_UNIT = re.compile(r"^(-?[\d.]+) ?(MiB|W|MHz|%|us)$")
_BARE = re.compile(r"^(-?[\d.]+)(?: C|x| bank\(s\))$")


def _query(driver: Driver, words: Sequence[Mapping[str, str]]) -> str:
    """Return the CSV fields: names, unit and the value of each GPU, separated by tabs."""
    rows = [
        *((("timestamp",), layout.NOW), (("driver_version",), driver.version)),
        *((("count",), str(len(words))), (("index",), "{index}")),
        *((("compute_cap",), "{compute_capability}"), (("hostname",), "{host}")),
        (("inforom.checksum_validation",), "valid"),
        (("power.management",), "Enabled"),
        *_totals(),
        *((row.fields, row.value) for row in _leaves(table()) if row.fields),
    ]
    return "".join(
        _field(fields, [value.format_map(each) for each in words]) for fields, value in rows
    )


def _totals() -> Iterator[tuple[tuple[str, ...], str]]:
    for kind in ("corrected", "uncorrected"):
        yield (f"ecc.errors.{kind}.volatile.total",), f"{{ecc_{kind}}}"
        yield (f"ecc.errors.{kind}.aggregate.total",), f"{{ecc_{kind}_lifetime}}"


def _leaves(rows: tuple[Row, ...]) -> Iterator[Row]:
    for row in rows:
        if row.rows:
            yield from _leaves(row.rows)
        else:
            yield row


def _field(names: tuple[str, ...], given: list[str]) -> str:
    unit = next((found[2] for value in given if (found := _UNIT.match(value))), "")
    shown = [_BARE.sub(r"\1", value) for value in given]
    if not names[0].startswith(("fabric.", "platform.")):
        shown = ["[N/A]" if value == "N/A" else value for value in shown]
    return "\t".join((" ".join(names), unit, *shown)) + "\n"
