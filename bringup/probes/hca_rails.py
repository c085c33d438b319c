"""Which compute devices belong to which GPU, nearest pair first (IB-11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .hca import Hca, InfiniBand, Purpose
from .text import natural

CLOSENESS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""How near a device is to a GPU, nearest first, in the words of ``nvidia-smi topo -m``."""

NEAR = ("PIX", "PXB")
"""Levels at which data goes between GPU and NIC without passing the processor."""


def assigned(devices: tuple[Hca, ...], gpus: tuple[str, ...]) -> InfiniBand:
    """Return devices with each GPU's own: nearest pair first, one each, then a share of the rest.

    A device that is farther than PXB is no second rail; where devices are fewer than GPUs, the
    GPUs left over share the nearest one.
    """
    compute = [d for d in devices if d.purpose is Purpose.COMPUTE and d.levels]
    count = max((len(d.levels) for d in compute), default=0)
    rails: dict[int, tuple[str, ...]] = {}
    free = list(compute)
    while free:
        turn = _one_each(free, range(count), CLOSENESS if not rails else NEAR)
        if not turn:
            break
        rails = {g: rails.get(g, ()) + ((turn[g],) if g in turn else ()) for g in range(count)}
        free = [d for d in free if d.name not in turn.values()]
    nearest = {gpu: names[0] for gpu, names in rails.items() if names}
    left = [gpu for gpu in range(count) if gpu not in nearest]
    nearest |= {g: name for g in left if (name := _closest(compute, g))}
    return InfiniBand(devices, dict(sorted(nearest.items())), rails, gpus)


def _one_each(
    devices: Sequence[Hca], gpus: Iterable[int], allowed: Sequence[str]
) -> dict[int, str]:
    """Pair greedily: the nearest pair first, then lower GPU index, then natural name order."""
    pairs = sorted(
        (CLOSENESS.index(device.levels[gpu]), gpu, natural(device.name), device.name)
        for gpu in gpus
        for device in devices
        if gpu < len(device.levels) and device.levels[gpu] in allowed
    )
    chosen: dict[int, str] = {}
    for _, gpu, _, name in pairs:
        if gpu not in chosen and name not in chosen.values():
            chosen[gpu] = name
    return chosen


def _closest(devices: Sequence[Hca], gpu: int) -> str:
    known = [d for d in devices if gpu < len(d.levels) and d.levels[gpu] in CLOSENESS]
    best = min(known, key=lambda d: CLOSENESS.index(d.levels[gpu]), default=None)
    return best.name if best else ""
