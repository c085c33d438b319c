"""IB-15, judged: what each rail between two hosts gave, against the rate of its ports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from ..core.reading import Known, Reading
from ..core.rules import Finding, Row, Seen, failed, judge, passed, warned
from ..probes.rail import Rail, Written
from .checks_rdma import OPT_IN
from .judging import not_told, unread

GOOD, POOR = 0.90, 0.75
"""Parts of a port's rate; Azure's health checks want 360 of 400 Gb/s."""


@dataclass(frozen=True, slots=True)
class RailWorld:
    """One rail between two hosts, and what it gave."""

    rail: Rail
    reading: Reading[Written]


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rails from one host to another gave, with a finding for each."""

    writer: str
    target: str
    rails: tuple[RailWorld, ...]
    findings: tuple[Finding, ...]


def _rate(world: RailWorld) -> Seen:
    if not isinstance(world.reading, Known):
        return unread(world.reading)
    written, rate = world.reading.value, world.rail.rate_gb_s
    if written.gb_s is None:
        return failed(f"{world.rail}: {written.trouble}")
    if rate is None:
        return not_told(f"the rate of the ports of {world.rail}; it gave {written.gb_s:.0f} Gb/s")
    part = written.gb_s / rate
    line = f"{world.rail}: {written.gb_s:.0f} of {rate:.0f} Gb/s, {part:.0%}"
    if part < POOR:
        return failed(line)
    return passed(line) if part >= GOOD else warned(line)


PAIR = cast(
    "Row[RailWorld]",
    replace(next(row for row in OPT_IN if row.id == "IB-15"), look=_rate),  # type: ignore[arg-type]
)
"""The row of the table, looking at a rail in place of a host."""


def judge_rails(worlds: Iterable[RailWorld], *, host: str) -> tuple[Finding, ...]:
    """Return one finding for each rail, about the host that writes."""
    return tuple(finding for world in worlds for finding in judge((PAIR,), world, host=host))
