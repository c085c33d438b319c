"""RDMA devices from what tools print: ibstat, ibv_devinfo, rdma link, ls, lspci, topo -m.

Each reader gives sightings that say little; `merged` joins them by device, `classified` (in
`hca_purpose`) makes of them what the probe would have read from sysfs.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping

from ...core.reading import Known, Reading, Unknown
from ..hca import GpuSlot, InfiniBand, Sighting, shown
from ..hca_purpose import classified
from ..text import decimal, unescaped, whole

_STATES = {
    "active": "ACTIVE",
    "down": "DOWN",
    "initializing": "INIT",
    "init": "INIT",
    "armed": "ARMED",
}
_PHYSICAL = {"link_up": "LinkUp", "polling": "Polling", "disabled": "Disabled"}
_SLOT = r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"


def state(word: str) -> str:
    """Return a port state in the kernel's word: Active, PORT_ACTIVE (4), 4: ACTIVE → ACTIVE."""
    bare = word.partition("(")[0].rpartition(":")[2].strip().removeprefix("PORT_")
    return _STATES.get(bare.lower(), bare.upper())


def from_ibstat(text: str) -> tuple[Sighting, ...]:
    """Read ``ibstat``: blocks that start with ``CA 'mlx5_0'``."""
    blocks = re.split(r"^CA '([^'\n]+)'", text, flags=re.MULTILINE)
    return tuple(
        _from_ibstat(name, body) for name, body in zip(blocks[1::2], blocks[2::2], strict=False)
    )


def _from_ibstat(name: str, body: str) -> Sighting:
    head, *ports = re.split(r"^\s*Port (\d+):", body, flags=re.MULTILINE)
    card = _colons(head)
    if not ports:  # a grep left the heading of the port out
        ports = ["1", head]
    numbered = [
        (number, _colons(port)) for number, port in zip(ports[::2], ports[1::2], strict=False)
    ]
    active = [item for item in numbered if item[1].get("State") == "Active"]
    number, port = next(iter(active or numbered), ("1", dict[str, str]()))
    return Sighting(
        name,
        image_guid=card.get("System image GUID", ""),
        firmware=card.get("Firmware version", ""),
        port=whole(number) or 1,
        state=state(port.get("State", "")),
        physical=port.get("Physical state", ""),
        rate_gb_s=decimal(port.get("Rate", "")),
        link_layer=port.get("Link layer", ""),
        lid=whole(port.get("Base lid", "")),
        sm_lid=whole(port.get("SM lid", "")),
    )


def from_ibv_devinfo(text: str) -> tuple[Sighting, ...]:
    """Read ``ibv_devinfo``: blocks that start with ``hca_id:``; it tells no rate."""
    blocks = re.split(r"^hca_id:\s*(\S+)", text, flags=re.MULTILINE)
    return tuple(
        _from_devinfo(name, _colons(body))
        for name, body in zip(blocks[1::2], blocks[2::2], strict=False)
    )


def _from_devinfo(name: str, told: Mapping[str, str]) -> Sighting:
    return Sighting(
        name,
        image_guid=told.get("sys_image_guid", ""),
        firmware=told.get("fw_ver", ""),
        port=whole(told.get("port", "")) or 1,
        state=state(told.get("state", "")),
        physical="LinkUp" if state(told.get("state", "")) == "ACTIVE" else "",
        link_layer=told.get("link_layer", ""),
        lid=whole(told.get("port_lid", "")),
        sm_lid=whole(told.get("sm_lid", "")),
    )


def _colons(text: str) -> dict[str, str]:
    """Return ``key: value`` lines; the first of a key counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def from_rdma_link(text: str) -> tuple[Sighting, ...]:
    """Read ``rdma link``: ``link mlx5_4/1 … state ACTIVE physical_state LINK_UP``, or JSON."""
    if text.lstrip().startswith("["):
        return tuple(_from_row(row) for row in _rows_of(text))
    return tuple(_from_link(line.split()) for line in text.splitlines() if _is_link(line.split()))


def _rows_of(text: str) -> list[dict[str, object]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [row for row in rows if isinstance(row, dict) and row.get("ifname")]


def _from_row(row: Mapping[str, object]) -> Sighting:
    """Read one object of ``rdma -j link``."""
    told = {str(key): str(value) for key, value in row.items()}
    words = [word for key in ("state", "physical_state", "netdev", "lid", "sm_lid") if key in told
             for word in (key, told[key])]  # fmt: skip
    return _from_link(["link", f"{told['ifname']}/{told.get('port', '1')}", *words])


def _is_link(words: list[str]) -> bool:
    return len(words) > 2 and words[0] == "link" and "/" in words[1]


def _from_link(words: list[str]) -> Sighting:
    name, _, port = words[1].partition("/")
    told = dict(zip(words[2::2], words[3::2], strict=False))
    physical = told.get("physical_state", "")
    return Sighting(
        name,
        port=whole(port) or 1,
        netdev=told.get("netdev", ""),
        state=state(told.get("state", "")),
        physical=_PHYSICAL.get(physical.lower(), physical),
        lid=whole(told.get("lid", "")),
        sm_lid=whole(told.get("sm_lid", "")),
    )


def from_ls(text: str) -> tuple[Sighting, ...]:
    """Read ``ls -l /sys/class/infiniband`` (links tell the PCI path) or plain ``ls`` of it."""
    return tuple(found for line in text.splitlines() if (found := _from_ls(line.strip())))


def _from_ls(line: str) -> Sighting | None:
    name, arrow, target = line.rpartition(" -> ")
    if not arrow:
        is_name = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*[0-9]", line)
        return Sighting(line) if is_name else None
    path = re.search(rf"/devices/\S*?({_SLOT})(?=/infiniband/)", target)
    device = name.split()[-1]
    if path is None:
        return Sighting(device)
    return Sighting(device, bus_id=path.group(1).lower(), path=path.group(0))


def models(text: str) -> dict[str, str]:
    """Read ``lspci -D``: the description of each device by full PCI address."""
    return {
        match.group(1).lower(): match.group(2).strip()
        for line in text.splitlines()
        if (match := re.match(rf"({_SLOT})\s+(.+)", line))
    }


def with_models(seen: Iterable[Sighting], described: Mapping[str, str]) -> tuple[Sighting, ...]:
    """Return devices with what ``lspci`` calls them, joined by PCI address."""
    return tuple(
        dataclasses.replace(device, model=described.get(device.bus_id, device.model))
        for device in seen
    )


def merged(*sources: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Return one sighting a device; an earlier source wins where both say something."""
    found: dict[str, Sighting] = {}
    for sighting in (sighting for source in sources for sighting in source):
        known = found.get(sighting.name)
        found[sighting.name] = _filled(known, sighting) if known else sighting
    return tuple(found.values())


def _filled(one: Sighting, other: Sighting) -> Sighting:
    """Return `one` with its gaps filled; 0 and False are words, not gaps."""
    gaps = {
        field.name: getattr(other, field.name)
        for field in dataclasses.fields(one)
        if getattr(one, field.name) in (None, "")
    }
    return dataclasses.replace(one, **gaps)


def topology(text: str) -> dict[str, tuple[str, ...]]:
    """Read the NIC columns of ``nvidia-smi topo -m``: levels to GPU 0, 1, … by device name."""
    lines = [line for line in unescaped(text).splitlines() if line.strip()]
    header = next((line for line in lines if re.match(r"\s*GPU0\t", line)), "")
    columns = [word.strip() for word in header.split("\t")][1:]
    legend = dict(re.findall(r"^\s*(NIC\d+): (\S+)\s*$", unescaped(text), flags=re.MULTILINE))
    gpu_rows = [row for row in _rows(lines) if re.fullmatch(r"GPU\d+", row[0])]
    nics = [(i, name) for i, name in enumerate(columns) if re.fullmatch(r"NIC\d+|mlx5_\w+", name)]
    if not gpu_rows or any(len(row) <= i + 1 for row in gpu_rows for i, _ in nics):
        return {}
    return {legend.get(name, name): tuple(row[i + 1] for row in gpu_rows) for i, name in nics}


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    for line in lines:
        row = [word.strip() for word in line.split("\t")]
        if len(row) > 1 and row[1]:
            yield row


def infiniband(
    seen: Iterable[Sighting],
    levels: Mapping[str, tuple[str, ...]] | None = None,
    slots: tuple[GpuSlot, ...] = (),
) -> Reading[InfiniBand]:
    """Return the devices as the probe would; unknown where no source named any."""
    devices = tuple(seen)
    if not devices:
        return Unknown("no RDMA device was named")
    ib = classified(devices, slots, levels or None)
    return Known(ib, shown(ib.devices))
