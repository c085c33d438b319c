"""Decide what each RDMA device is for, and which ones belong to which GPU.

Not every mlx5 device is a NIC: on HGX B200 and B300 some are management functions of the
NVSwitches, which are ACTIVE and carry no traffic (IB-01; siderolabs/extensions#893). Evidence, in
this order: the inventory's word, VPD, PCI functions of one chip, nearness to a GPU, rate and part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from .hca import GpuSlot, Hca, InfiniBand, Purpose, Sighting
from .hca_contrast import Verdict, without_slow, without_strangers
from .hca_rails import CLOSENESS, NEAR, assigned
from .text import natural

SLOW_ETHERNET_GB_S = 100
"""An active Ethernet port below this rate is for management or storage on a GPU host."""

BLUEFIELD = ("15b3:a2d6", "15b3:a2dc", "15b3:a2df")
"""PCI ids of BlueField-2, -3 and -4 network functions."""

SOFTWARE = re.compile(r"(?:rxe|siw)_?\w*\d")
"""Names of devices that the kernel emulates over any network card."""

Levels = Mapping[str, tuple[str, ...]]
"""Levels of each device by name, in the order of the GPUs."""


def classified(
    devices: Iterable[Sighting], slots: Sequence[GpuSlot] = (), levels: Levels | None = None
) -> InfiniBand:
    """Return all devices in natural order, each with its purpose and evidence.

    `levels` stands in for PCI paths where only ``topo -m`` told them.
    """
    seen = sorted(devices, key=lambda device: natural(device.name))
    told = levels or {device.name: path_levels(device, slots) for device in seen}
    purposes = _purposes(seen, told)
    return assigned(
        tuple(_hca(d, purposes[d.name], told.get(d.name, ())) for d in seen),
        tuple(slot.bus_id for slot in slots),
    )


def reclassified(ib: InfiniBand, overrides: Mapping[str, Purpose]) -> InfiniBand:
    """Return devices with the inventory's word on what they are for, by prefix of the PCI id."""
    return assigned(tuple(_overridden(device, overrides) for device in ib.devices), ib.gpus)


def relevelled(ib: InfiniBand, levels: Levels, gpus: tuple[str, ...]) -> InfiniBand:
    """Return devices with the levels that ``topo -m`` told, and what follows from them."""
    seen = tuple(_sighting(device) for device in ib.devices)
    known = {d.name: d for d in ib.devices}
    fresh = classified(seen, tuple(GpuSlot(bus) for bus in gpus), levels)
    kept = tuple(
        replace(d, purpose=known[d.name].purpose, why=known[d.name].why)
        if known[d.name].purpose is Purpose.BRIDGE
        else d
        for d in fresh.devices
    )
    return assigned(kept, gpus)


def _sighting(device: Hca) -> Sighting:
    return Sighting(
        device.name,
        switch_management=device.purpose is Purpose.BRIDGE,
        bus_id=device.bus_id,
        part=device.part,
        firmware=device.firmware,
        numa=device.numa,
        netdev=device.netdev,
        port=device.port,
        state=device.state,
        physical=device.physical,
        rate_gb_s=device.rate_gb_s,
        link_layer=device.link_layer,
        gid=device.gid,
        mtu=device.mtu,
        lid=device.lid,
        sm_lid=device.sm_lid,
    )


def from_words(compute: str = "", storage: str = "") -> dict[str, Purpose]:
    """Return overrides from lists of PCI prefixes such as ``0000:18,0000:40``."""
    words = ((compute, Purpose.COMPUTE), (storage, Purpose.STORAGE))
    return {
        prefix.strip(): purpose
        for text, purpose in words
        for prefix in text.split(",")
        if prefix.strip()
    }


def _overridden(device: Hca, overrides: Mapping[str, Purpose]) -> Hca:
    prefixes = [prefix for prefix in overrides if device.bus_id.startswith(prefix)]
    if not device.bus_id or not prefixes:
        return device
    longest = max(prefixes, key=len)
    return replace(device, purpose=overrides[longest], why=f"inventory: PCI {longest}")


def _hca(seen: Sighting, verdict: Verdict, levels: tuple[str, ...]) -> Hca:
    return Hca(
        seen.name,
        verdict[0],
        state=seen.state,
        physical=seen.physical,
        rate_gb_s=seen.rate_gb_s,
        link_layer=seen.link_layer,
        bus_id=seen.bus_id,
        numa=seen.numa,
        firmware=seen.firmware,
        why=verdict[1],
        port=seen.port,
        netdev=seen.netdev,
        part=seen.part,
        gid=seen.gid,
        mtu=seen.mtu,
        lid=seen.lid,
        sm_lid=seen.sm_lid,
        levels=levels,
    )


def path_levels(device: Sighting, slots: Sequence[GpuSlot]) -> tuple[str, ...]:
    """Return how near a device is to each GPU by the PCI paths of both; () without a path."""
    if not device.path or not all(slot.path for slot in slots):
        return ()
    return tuple(_level(device, slot) for slot in slots)


def _level(device: Sighting, slot: GpuSlot) -> str:
    one, other = _bridges(device.path), _bridges(slot.path)
    shared = 0
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            break
        shared += 1
    if shared == 0:
        is_same_node = device.numa is not None and device.numa == slot.numa
        return "NODE" if is_same_node else "SYS"
    if shared == 1:
        return "PHB"
    return "PIX" if max(len(one), len(other)) - shared <= 2 else "PXB"


def _bridges(path: str) -> tuple[str, ...]:
    """Return the PCI part of a sysfs path, root bus first."""
    parts = tuple(path.strip("/").split("/"))
    start = next((i for i, part in enumerate(parts) if part.startswith("pci")), len(parts))
    return parts[start:]


def _purposes(seen: Sequence[Sighting], levels: Levels) -> dict[str, Verdict]:
    """Return a purpose for every device: sure signs first, then what is left by comparison."""
    slots = _slots(seen)
    chips = {d.name: _chip(d, seen) or slots[d.name] for d in seen}
    sure = {d.name: verdict for d in seen if (verdict := _by_sign(d, chips[d.name]))}
    left = [device for device in seen if device.name not in sure]
    near = [device for device in left if _nearest(levels.get(device.name, ())) in NEAR]
    compare = _beside_gpus(near, levels) if near else _by_part(left, slots)
    verdicts = {**sure, **{device.name: compare(device) for device in left}}
    beside = {device.name for device in near}
    return without_slow(seen, without_strangers(seen, verdicts, beside))


def _slots(seen: Sequence[Sighting]) -> dict[str, tuple[Sighting, ...]]:
    """Return, for each device, all functions of its PCI slot, itself included."""

    def slot(device: Sighting) -> str:
        return device.bus_id.rpartition(".")[0] or device.name

    return {d.name: tuple(o for o in seen if slot(o) == slot(d)) for d in seen}


BRIDGE_GB_S = 100
"""The rate at which a chip that reaches the NVSwitches links to them."""


def _chip(device: Sighting, seen: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """Return the devices of one slow chip by its image GUID, where no PCI address was told.

    () where that is all devices, or some are faster: then the GUID says nothing of a bridge.
    """
    if device.bus_id or not device.image_guid.strip("0x:"):
        return ()
    same = tuple(other for other in seen if other.image_guid == device.image_guid)
    is_slow = all((other.rate_gb_s or 0) <= BRIDGE_GB_S for other in same)
    return same if is_slow and len(same) < len(seen) else ()


def _by_sign(device: Sighting, functions: tuple[Sighting, ...]) -> Verdict | None:
    if device.switch_management:
        return Purpose.BRIDGE, "VPD says SW_MNG"
    if device.is_virtual:
        return Purpose.STORAGE, "virtual function of another device"
    if SOFTWARE.match(device.name):
        return Purpose.STORAGE, "RDMA in software: the processor copies"
    if _looks_like_bridge(device, functions):
        where = "in one PCI slot" if device.bus_id else "of one chip"
        return Purpose.BRIDGE, f"{len(functions)} InfiniBand functions {where}, no VPD read"
    if _is_slow_ethernet(device):
        return Purpose.STORAGE, f"Ethernet at {device.rate_gb_s:g} Gb/s"
    return None


def _looks_like_bridge(device: Sighting, functions: tuple[Sighting, ...]) -> bool:
    """Without VPD: a NIC has at most two functions, an NVSwitch bridge chip shows more."""
    if device.switch_management is not None or device.link_layer == "Ethernet":
        return False
    return len(functions) > 2 and len({f.image_guid for f in functions}) == 1


def _is_slow_ethernet(device: Sighting) -> bool:
    rate = device.rate_gb_s
    is_up = device.state == "ACTIVE" and device.link_layer == "Ethernet"
    return is_up and rate is not None and rate < SLOW_ETHERNET_GB_S


def _beside_gpus(near: Sequence[Sighting], levels: Levels) -> Callable[[Sighting], Verdict]:
    names = {device.name for device in near}

    def compare(device: Sighting) -> Verdict:
        level = _nearest(levels.get(device.name, ()))
        if device.name in names:
            return Purpose.COMPUTE, f"{level} to a GPU"
        return Purpose.STORAGE, f"no GPU nearer than {level or 'unknown'}, unlike {near[0].name}"

    return compare


def _by_part(
    left: Sequence[Sighting], slots: Mapping[str, tuple[Sighting, ...]]
) -> Callable[[Sighting], Verdict]:
    """Without a near device: one function on its card speaks for compute, where any is such."""
    single = [d for d in left if len(slots[d.name]) == 1 and not _is_bluefield(d)]

    def compare(device: Sighting) -> Verdict:
        if not single or device in single:
            return Purpose.COMPUTE, "no sign of another purpose"
        if _is_bluefield(device):
            return Purpose.STORAGE, f"BlueField, unlike {single[0].name}"
        return Purpose.STORAGE, f"shares its card with another function, unlike {single[0].name}"

    return compare


def _is_bluefield(device: Sighting) -> bool:
    return device.part in BLUEFIELD or "bluefield" in device.model.lower()


def _nearest(levels: Iterable[str]) -> str:
    known = [level for level in levels if level in CLOSENESS]
    return min(known, key=CLOSENESS.index, default="")
