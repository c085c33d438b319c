"""The fixed layouts of `nvidia-smi`: its table, its lists, and its matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import pci
from .hardware import Driver, Gpus, Hardware, gpu_uuid

NOW = "@NOW@"
"""Where the stand-in puts the time."""


def lists(gpus: Gpus, host: str) -> dict[str, str]:
    """Return `-L`, the ways to name a GPU, and `nvlink -s`."""
    named, names, links = [], [], []
    for index, slot in enumerate(gpus.slots):
        uuid = gpu_uuid(host, index)
        named.append(f"GPU {index}: {gpus.product} (UUID: {uuid})\n")
        names.append(f"{index}\t{uuid}\t{pci.bus_id(slot.pci)}\n")
        rates = [
            "<inactive>" if link < gpus.inactive_links else f"{gpus.nvlink_gb_s} GB/s"
            for link in range(gpus.nvlinks)
        ]
        lines = (f"\t Link {link}: {rate}\n" for link, rate in enumerate(rates))
        links.append(named[-1] + "".join(lines))
    return {"list": "".join(named), "names": "".join(names), "nvlink": "".join(links)}


def version(driver: Driver) -> str:
    library = ".".join(driver.version.split(".")[:2])
    return (
        f"NVIDIA-SMI version  : {driver.version}\nNVML version        : {library}\n"
        f"DRIVER version      : {driver.version}\nCUDA Version        : {driver.cuda}\n"
    )


_RULE = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"
_WIDE = f"+{'-' * 89}+"


def banner(driver: Driver, gpus: Sequence[Mapping[str, str]]) -> str:
    """Return the table that `nvidia-smi` prints without arguments."""
    lines = [
        f"{NOW}       ",
        _WIDE,
        f"| NVIDIA-SMI {driver.version:<22} {_versions(driver)}|",
        _RULE,
        *_HEAD,
        f"|{'=' * 41}+{'=' * 24}+{'=' * 22}|",
    ]
    for words in gpus:
        lines += [*_banner_rows(words), _RULE]
    return "\n".join((*lines, "", *_NO_PROCESSES)) + "\n"


def _cells(left: str, middle: str, right: str) -> str:
    return f"| {left:<40}| {middle:<23}| {right:<21}|"


_HEAD = (
    _cells(
        "GPU  Name                 Persistence-M", "Bus-Id          Disp.A", "Volatile Uncorr. ECC"
    ),
    _cells(
        "Fan  Temp   Perf          Pwr:Usage/Cap", "          Memory-Usage", "GPU-Util  Compute M."
    ),
    _cells("", "", "              MIG M."),
)
_NO_PROCESSES = (
    _WIDE,
    f"| {'Processes:':<88}|",
    f"|  GPU   GI   CI {'PID':>16}   Type   {'Process name':<35} GPU Memory |",
    f"|        ID   ID {'Usage':>67}      |",
    f"|{'=' * 89}|",
    f"|  {'No running processes found':<87}|",
    _WIDE,
)


def _versions(driver: Driver) -> str:
    """Return the banner's versions; driver 610 renamed the labels (sgl-project/sglang#27487)."""
    if int(driver.version.split(".")[0]) >= 610:
        return f"KMD Version: {driver.version:<13} CUDA UMD Version: {driver.cuda:<9}"
    return f"Driver Version: {driver.version:<14} CUDA Version: {driver.cuda:<9}"


def _banner_rows(words: Mapping[str, str]) -> tuple[str, str, str]:
    mode = "On" if words["persistence"] == "Enabled" else "Off"
    draw, cap = float(words["power_draw"]), float(words["power_limit"])
    used, total = f"{words['memory_used']}MiB", f"{words['memory_total']}MiB"
    busy = words["utilization"].replace(" ", "")
    return (
        f"|{words['index']:>4}  {words['product']:<31}{mode:<3} "
        f"|{words['bus_id']:>19} Off |{words['ecc_uncorrected']:>21} |",
        f"| N/A {words['temperature']:>4}C    P0 {f'{draw:.0f}W':>15} / {f'{cap:.0f}W':>5} "
        f"|{used:>11} / {total:>9} |{busy:>8} {words['compute_mode']:>12} |",
        f"|{'':41}|{'':24}|{words['mig']:>21} |",
    )


_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""  # noqa: E501 - the tool's own lines


def topology(hardware: Hardware) -> str:
    """Return `nvidia-smi topo -m`: tabs between columns, terminal escapes around the header."""
    places = [(f"GPU{i}", slot.pci, slot.numa) for i, slot in enumerate(hardware.slots)]
    places += [(f"NIC{i}", port.pci, port.numa) for i, port in enumerate(hardware.ports)]
    names = [name for name, _, _ in places]
    lines = [
        "\t".join(
            ("\t\x1b[4m" + names[0], *names[1:], "CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
        )
        + "\x1b[0m"
    ]
    links = f"NV{hardware.gpus.nvlinks - hardware.gpus.inactive_links}" if hardware.gpus else ""
    for name, place, numa in places:
        cells = [_cell((name, place, numa), other, links) for other in places]
        tail = ("", "", "", "")
        if name.startswith("GPU"):
            tail = (hardware.cpu.numbers(numa), str(numa), "", "N/A")
        lines.append("\t".join((name, *cells, *tail)))
    legend = [_LEGEND] if not hardware.ports else [_LEGEND, "\nNIC Legend:\n\n"]
    legend += [f"  NIC{i}: {port.name}\n" for i, port in enumerate(hardware.ports)]
    return "\n".join(lines) + "\n" + "".join(legend) + ("\n" if hardware.ports else "")


def _cell(one: tuple[str, str, int], other: tuple[str, str, int], links: str) -> str:
    if one[0] == other[0]:
        return " X "
    if links and one[0].startswith("GPU") and other[0].startswith("GPU"):
        return links
    return pci.relation(one[1], other[1], same_node=one[2] == other[2])


def peers(count: int) -> str:
    """Return `nvidia-smi topo -p2p`."""
    names = [f"GPU{index}" for index in range(count)]
    rows = [
        "\t".join((f" {name}", *("X" if name == other else "OK" for other in names), ""))
        for name in names
    ]
    words = (
        ("X", "Self"), ("OK", "Status Ok"), ("CNS", "Chipset not supported"),
        ("GNS", "GPU not supported"), ("TNS", "Topology not supported"),
        ("NS", "Not supported"), ("U", "Unknown"),
    )  # fmt: skip
    legend = "".join(f"  {word:<4} = {meaning}\n" for word, meaning in words)
    header = " \t\x1b[4m" + "\t".join(names) + "\t\x1b[0m"
    return "\n".join((header, *rows)) + "\n\nLegend:\n\n" + legend
