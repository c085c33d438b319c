"""TIM-01 and TIM-02: can the logs of two hosts be laid side by side?"""

from __future__ import annotations

from ..core.reading import Known
from ..core.rules import Row, Seen, World, failed, passed, warned
from ..probes.clock import Clock
from .judging import QUIET, not_told, unread

NODE_EXPORTER = "https://github.com/prometheus/node_exporter"
ALLOWED_S, BROKEN_S = 0.05, 5.0


def _synchronized(world: World) -> Seen:
    reading = world.facts[Clock]
    if not isinstance(reading, Known):
        return unread(reading)
    clock = reading.value
    if clock.synchronized is None:
        return not_told("neither timedatectl nor chronyc could tell")
    if clock.synchronized:
        return passed(f"{clock.by}: synchronised")
    return warned(f"{clock.by}: the clock is not synchronised")


def _offset(world: World) -> Seen:
    reading = world.facts[Clock]
    if not isinstance(reading, Known):
        return unread(reading)
    offset, unsure = reading.value.offset_s, reading.value.uncertain_s or 0.0
    if offset is None:
        return not_told("the clock was not compared with another one")
    line = f"{offset:+.3f} s (within {unsure:.3f} s)"
    least = max(0.0, abs(offset) - unsure)
    if least > BROKEN_S:
        return failed(line)
    return warned(line) if least > ALLOWED_S else passed("no difference that could be measured")


CHRONY = "apt-get install chrony; systemctl enable --now chrony; chronyc makestep"

ROWS: tuple[Row[World], ...] = (
    Row(
        "TIM-01",
        "The clock is synchronised",
        _synchronized,
        reason="a request is followed through the logs of two hosts by its time",
        source=NODE_EXPORTER,
        remedy=CHRONY,
    ),
    Row(
        "TIM-02",
        "The clock agrees with the controller's",
        _offset,
        reason="leases and certificates fail on a clock that is far off; more than 0.05 s blurs "
        "the order of events, more than 5 s is our own limit",
        source=NODE_EXPORTER,
        remedy=CHRONY,
        levels={k: v for k, v in QUIET.items() if k.value == "fail"},
    ),
)
