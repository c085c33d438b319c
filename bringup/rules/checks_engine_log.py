"""ENG-05: does an engine's own log, where somebody read one, name why it does not serve?"""

from __future__ import annotations

from ..core.reading import Known
from ..core.rules import Finding, Level, Row, Seen, Status, World, failed, judge, passed, warned
from ..probes.engine_log import Cause, EngineLog, EngineLogs, Told
from ..probes.parts import NOT_ASKED
from . import collect, where
from .judging import not_told, unread, worst

MOMENTARY = frozenset({"GPU-20", "GPU-23", "NET-05", "OS-04", "OS-10", "SLU-04"})
"""Checks of what changes from one moment to the next, or is reckoned: a log knows better."""

BETWEEN_HOSTS = frozenset({"IB-12", "IB-16"})
"""Checks of RDMA, which a worker on one host goes without."""

KERNELS = "JIT-"
"""Checks of kernels, for which an engine that has no compiler can take others."""


def _logs(world: World) -> Seen | None:
    """Judge the logs that somebody read; where nobody did there is nothing to say."""
    reading = world.facts[EngineLogs]
    if reading == NOT_ASKED:
        return None
    if not isinstance(reading, Known):
        return unread(reading)
    seen = ((log.source, _log(log, world)) for log in reading.value.logs)
    return worst(seen, f"came up: {', '.join(log.source for log in reading.value.logs)}")


def _log(log: EngineLog, world: World) -> Seen:
    if log.told is None:
        return not_told("what the log means, since no catalogue of failures was asked")
    cause = next((cause for cause in log.told.causes if _matters(cause, world)), None)
    if cause is None:
        return _without_cause(log, log.told)
    lines = (cause.line, f"{cause.title}: {cause.why}")
    if not cause.is_certain or log.told.up:
        return warned(*lines, *filter(None, (log.told.up,)), remedy=cause.remedy)
    return _ended(cause, lines, world)


def _matters(cause: Cause, world: World) -> bool:
    """Between the GPUs of one host nothing needs the network, whatever NCCL says of it."""
    role = world.role
    if cause.is_certain or role is None or not BETWEEN_HOSTS.intersection(cause.checks):
        return True
    return where.is_pair(role) or any(len(hosts) > 1 for hosts in role.workers)


def _ended(cause: Cause, lines: tuple[str, ...], world: World) -> Seen:
    """Judge a sure cause, unless all who looked at the host see it mended, or a way round it."""
    found = _witnesses(cause, world)
    if found and all(one.status is Status.PASS for one in found):
        now = f"{', '.join(one.id for one in found)} now passes: the log may tell of an older start"
        return warned(*lines, now, remedy="start it again, and read its new log")
    wrong = [one for one in found if one.status in (Status.FAIL, Status.WARN)]
    has_way = wrong and all(_has_way(one) for one in wrong)
    level = Level.WARN if has_way else Level.BLOCK
    return failed(*lines, remedy=cause.remedy, level=level)


def _has_way(one: Finding) -> bool:
    return one.id.startswith(KERNELS) and one.level is not Level.BLOCK


def _witnesses(cause: Cause, world: World) -> tuple[Finding, ...]:
    """Return what the checks of a cause find, () where they know less than the log."""
    if MOMENTARY.intersection(cause.checks):
        return ()
    return judge((row for row in collect() if row.id in cause.checks), world)


def _without_cause(log: EngineLog, told: Told) -> Seen:
    if told.up:
        return passed(told.up)
    if told.said or log.code:
        lines = told.said or tuple(log.text.strip().splitlines()[-1:])
        level = Level.NOTE if told.has_served and not log.code else Level.WARN
        return warned(*lines, level=level)
    return not_told(f"how the start ends; so far: {told.phase or 'nothing that is known'}")


ROWS: tuple[Row[World], ...] = (
    Row(
        "ENG-05", "The engine's log names no cause that ends a start", _logs,
        "an engine that ended says why in its own log, often far above its last line; looked at "
        "only where somebody gives a log beside what the host says",
        "docs/checks.md#eng-05", "read the log above these lines: bringup diagnose --log FILE",
    ),
)  # fmt: skip
