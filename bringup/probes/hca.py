"""Values about RDMA devices, and the lists that UCX and NCCL want of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from .text import natural


class Purpose(Enum):
    """What an RDMA device is for."""

    COMPUTE = "compute"
    STORAGE = "storage"  # storage or management
    BRIDGE = "nvswitch bridge"  # management function of the NVSwitches: never in a NIC list


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one source saw of a device; None or "" where it says nothing. Rate in Gb/s."""

    name: str
    bus_id: str = ""  # e.g. 0000:18:00.0
    path: str = ""  # of the PCI device below /sys, e.g. /devices/pci0000:15/…/0000:18:00.0
    part: str = ""  # vendor:device in hexadecimal, e.g. 15b3:1021
    model: str = ""  # in words, e.g. BlueField-3, when lspci told
    image_guid: str = ""  # shared by all functions of one chip
    firmware: str = ""
    numa: int | None = None
    netdev: str = ""
    is_virtual: bool = False  # an SR-IOV function whose physical one is on this host too
    switch_management: bool | None = None  # VPD says SW_MNG; None: nobody could read it
    port: int = 1
    state: str = ""
    physical: str = ""
    rate_gb_s: float | None = None
    link_layer: str = ""
    gid: str = ""  # "RoCE v2" where the port has such an address
    mtu: int | None = None  # of the network device
    lid: int | None = None
    sm_lid: int | None = None


@dataclass(frozen=True, slots=True)
class Hca:
    """One RDMA device with the state of one port: the first active one, else the first.

    Rate in Gb/s. `levels` says how near the device sits to each GPU, in the words of
    ``nvidia-smi topo -m`` (PIX, PXB, PHB, NODE, SYS) and in the order of `InfiniBand.gpus`.
    """

    name: str
    purpose: Purpose
    state: str = ""  # ACTIVE, DOWN, INIT, …
    physical: str = ""  # LinkUp, Polling, …
    rate_gb_s: float | None = None
    link_layer: str = ""
    bus_id: str = ""
    numa: int | None = None
    firmware: str = ""
    why: str = ""  # the evidence for its purpose
    port: int = 1
    netdev: str = ""
    part: str = ""
    gid: str = ""
    mtu: int | None = None
    lid: int | None = None
    sm_lid: int | None = None
    levels: tuple[str, ...] = ()

    @property
    def is_active(self) -> bool:
        return self.state == "ACTIVE"

    @property
    def is_elastic(self) -> bool:
        """Whether it is an Elastic Fabric Adapter: verbs show it, and UCX cannot use it."""
        return bool(re.match(r"rdmap\d+s\d+|efa_\d+$", self.name))


@dataclass(frozen=True, slots=True)
class GpuSlot:
    """Where a GPU sits on the PCI bus, in the order in which the driver numbers GPUs."""

    bus_id: str
    path: str = ""
    numa: int | None = None


@dataclass(frozen=True, slots=True)
class InfiniBand:
    """All RDMA devices in natural order, and the compute devices nearest to each GPU index.

    `nearest` gives each GPU one device, shared only where there are fewer devices than GPUs;
    `rails` gives it all of its devices. `gpus` are bus ids, by index.
    """

    devices: tuple[Hca, ...]
    nearest: Mapping[int, str] = field(default_factory=dict)
    rails: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    whole: bool = True  # False: only some devices were listed

    @property
    def compute(self) -> tuple[Hca, ...]:
        return self.of(Purpose.COMPUTE)

    @property
    def bridges(self) -> tuple[Hca, ...]:
        return self.of(Purpose.BRIDGE)

    def of(self, purpose: Purpose) -> tuple[Hca, ...]:
        """Return the devices of one purpose."""
        return tuple(d for d in self.devices if d.purpose is purpose)

    def named(self, name: str) -> Hca | None:
        """Return the device of a name, or None."""
        return next((d for d in self.devices if d.name == name), None)


def rail_order(ib: InfiniBand) -> tuple[Hca, ...]:
    """Return the ACTIVE compute devices in the order of their GPUs, the others after them."""
    by_gpu = [name for _, names in sorted(ib.rails.items()) for name in names]
    by_gpu += [name for _, name in sorted(ib.nearest.items())]
    order = {name: place for place, name in reversed(tuple(enumerate(by_gpu)))}
    usable = [device for device in ib.compute if device.is_active]
    return tuple(sorted(usable, key=lambda d: (order.get(d.name, len(by_gpu)), natural(d.name))))


def ucx_net_devices(ib: InfiniBand) -> str:
    """Return the value of UCX_NET_DEVICES, e.g. ``mlx5_4:1,mlx5_7:1``; UCX needs the port part."""
    return ",".join(f"{device.name}:{device.port}" for device in rail_order(ib))


def nccl_ib_hca(ib: InfiniBand) -> str:
    """Return the value of NCCL_IB_HCA; ``=`` stops NCCL from taking mlx5_10 for mlx5_1."""
    names = ",".join(device.name for device in rail_order(ib))
    return f"={names}" if names else ""


def shown(devices: Iterable[Hca]) -> str:
    """Return devices in one line for people, e.g. ``mlx5_4 ACTIVE 400 Gb/s, mlx5_7 DOWN``."""
    return ", ".join(_shown(device) for device in devices) or "none"


def _shown(device: Hca) -> str:
    rate = f" {device.rate_gb_s:g} Gb/s" if device.is_active and device.rate_gb_s else ""
    return f"{device.name} {device.state or 'state unknown'}{rate}"
