"""Figures that others measured, against what links and ports promise."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.reading import Known
from ..core.rules import Seen, World, failed
from ..probes.figures import NcclNetwork, RailFigures, Reduced
from ..probes.hca import Hca

POOR = 0.75
"""Of a port's rate, as for IB-15: below it a rail map, the PCI link or ACS is wrong."""

SOCKETS = 0.15
"""Of all ports' rates together: an all-reduce between hosts that gives less does not use them."""


def slow_rails(world: World, active: Iterable[Hca]) -> Seen | None:
    """Return the failure of ports over which perftest moved too little, or nothing."""
    reading = world.facts[RailFigures]
    if not isinstance(reading, Known):
        return None
    lines = [line for device in active if (line := _slow(reading.value, device))]
    remedy = "look at IB-07, IB-10 and IB-11, then measure again: ib_write_bw -d DEVICE HOST"
    return failed(*lines, remedy=remedy) if lines else None


def _slow(figures: RailFigures, device: Hca) -> str:
    if device.name not in figures.by_device:
        return ""
    gave = figures.by_device[device.name]
    if gave is None:
        return f"{device.name}: {figures.troubles.get(device.name, 'the transfer broke')}"
    if device.rate_gb_s is None or gave >= device.rate_gb_s * POOR:
        return ""
    return f"{device.name}: perftest moved {gave:.0f} of {device.rate_gb_s:g} Gb/s"


def unused(world: World, usable: Iterable[Hca]) -> str:
    """Return how it shows that NCCL does not use the active ports, or ""."""
    network, reduced = world.facts[NcclNetwork], world.facts[Reduced]
    if isinstance(network, Known) and network.value.name == "Socket":
        return f"NCCL goes over TCP beside active ports: {network.evidence}"
    if not isinstance(reduced, Known) or reduced.value.hosts < 2:
        return ""
    rates = [device.rate_gb_s for device in usable]
    told = [rate for rate in rates if rate is not None]
    floor = sum(told) / 8 * SOCKETS
    if len(told) < len(rates) or reduced.value.gb_s >= floor:
        return ""
    return f"all-reduce between hosts: {reduced.value.gb_s:.1f} GB/s, ports have {sum(told) / 8:g}"
