"""RDMA devices from sysfs: what each is for, its port, its rate, and how near each GPU it sits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Purpose(Enum):
    """What an RDMA device is for."""

    COMPUTE = "compute"
    STORAGE = "storage"  # storage or management
    BRIDGE = "nvswitch bridge"  # management function of the NVSwitches: never in a NIC list


@dataclass(frozen=True, slots=True)
class Hca:
    """One RDMA device with the state of its first port. Rate in Gb/s."""

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

    @property
    def is_active(self) -> bool:
        return self.state == "ACTIVE"


@dataclass(frozen=True, slots=True)
class InfiniBand:
    """All RDMA devices in natural order, and the nearest compute device of each GPU index."""

    devices: tuple[Hca, ...]
    nearest: Mapping[int, str] = field(default_factory=dict)

    @property
    def compute(self) -> tuple[Hca, ...]:
        return tuple(d for d in self.devices if d.purpose is Purpose.COMPUTE)
