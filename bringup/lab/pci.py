"""PCI places in `lspci -PP` notation: ``15:01.0/16:00.0/1b:00.0``, a device behind two bridges."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from .hardware import Hardware
from .tree import Entry, File, Link


@dataclass(frozen=True, slots=True)
class Identity:
    """Who made a device and what it is; hex digits without 0x."""

    vendor: str
    device: str
    kind: str  # the class code


def hops(place: str) -> tuple[str, ...]:
    """Return the addresses from the root port to the device, with their domain."""
    return tuple(f"0000:{hop}" for hop in place.split("/"))


def device(place: str) -> str:
    """Return the device's own address: ``0000:1b:00.0``."""
    return hops(place)[-1]


def bus_id(place: str) -> str:
    """Return the address as the NVIDIA driver prints it: ``00000000:1B:00.0``."""
    return "0000" + device(place).upper()


def folder(place: str) -> str:
    """Return the device's folder in sysfs."""
    chain = hops(place)
    return "/".join(("/sys/devices", f"pci{chain[0].rpartition(':')[0]}", *chain))


def relation(one: str, other: str, *, same_node: bool) -> str:
    """Return how two devices are joined, in the words of `nvidia-smi topo -m`."""
    here, there = hops(one), hops(other)
    shared = sum(a == b for a, b in zip(here[:-1], there[:-1], strict=False))
    if not shared:
        return "NODE" if same_node else "SYS"
    bridges = len(here) + len(there) - 2 - 2 * shared
    return "PIX" if bridges <= 2 else "PXB"


def bridges(hardware: Hardware) -> dict[str, int]:
    """Return the place of every bridge above a GPU or port, and its NUMA node."""
    places = [(slot.pci, slot.numa) for slot in hardware.slots]
    places += [(port.pci, port.numa) for port in hardware.ports]
    found: dict[str, int] = {}
    for place, numa in places:
        words = place.split("/")
        found.update({"/".join(words[:count]): numa for count in range(1, len(words))})
    return found


def entries(cpus: str, numa: int, place: str, what: Identity) -> Iterator[tuple[str, Entry]]:
    """Yield a device's files under /sys/devices, and its link on the bus."""
    base = folder(place)
    values = {
        "vendor": f"0x{what.vendor}", "device": f"0x{what.device.lower()}",
        "class": f"0x{what.kind}", "numa_node": str(numa),
    }  # fmt: skip
    if what.kind != BRIDGE.kind:
        values |= _LINK | {"local_cpulist": cpus}
        ids = bytes.fromhex(what.vendor)[::-1] + bytes.fromhex(what.device)[::-1]
        yield f"{base}/config", File(ids.ljust(64, b"\0"))
    yield from ((f"{base}/{name}", File(f"{value}\n")) for name, value in values.items())
    yield link(f"/sys/bus/pci/devices/{device(place)}", base)


BRIDGE = Identity("10b5", "c040", "060400")
_LINK = {
    "revision": "0xa1", "enable": "1",
    "current_link_speed": "64.0 GT/s PCIe", "max_link_speed": "64.0 GT/s PCIe",
    "current_link_width": "16", "max_link_width": "16",
}  # fmt: skip


def link(path: str, target: str) -> tuple[str, Link]:
    """Return a relative link, so that it holds below any root folder."""
    return path, Link(posixpath.relpath(target, posixpath.dirname(path)))
