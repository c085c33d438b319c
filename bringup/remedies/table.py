"""The remedies, one row a finding, in the order of dependency."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.fixes import Choice, Fix, Risk
from ..core.rules import Finding, Level, Status, World
from . import container, gpu, hold, memory, slurm, system
from .left import arranged
from .remedy import Remedy, fixes_for

_TABLES = (container.ROWS, gpu.ROWS, system.ROWS, memory.ROWS, slurm.ROWS)
REMEDIES: tuple[Remedy, ...] = tuple(
    sorted((row for table in _TABLES for row in table), key=lambda row: row.order)
)
_ROWS = {name: row for row in REMEDIES for name in row.names}

HOLD = "HOLD"
"""The one fix that follows no finding: a driver that upgrades by itself breaks later."""


def fixes_of(world: World, findings: Iterable[Finding], choice: Choice) -> tuple[Fix, ...]:
    """Return all fixes of a host in the order in which they are to be done."""
    found = arranged(world, fixes_for(REMEDIES, world, findings, choice), _ROWS)
    is_wanted = not choice.only or HOLD in choice.only
    steps = hold.hold_driver(world) if is_wanted and world.host.root == "/" else ()
    if not steps:
        return found
    finding = Finding(
        HOLD, "The driver's packages are held", Status.WARN, Level.NOTE, world.host.name, (),
        "an unattended upgrade replaces libraries under a loaded module", "",
        "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    )  # fmt: skip
    return Fix(finding, "hold the driver's packages", Risk.SAFE, steps=steps), *found


def known_ids() -> tuple[str, ...]:
    """Return what ``--fix-only`` may name, besides findings that only a person can mend."""
    return (HOLD, *(row.finding for row in REMEDIES))
