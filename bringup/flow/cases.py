"""A case that somebody wrote down, as a world to judge: its logs read by the catalogue as well.

The catalogue of failures is a room of its own that checks know nothing of, so what it tells of a
log is put into the facts here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..core.host import Host, Kind
from ..core.reading import Known
from ..core.rules import World
from ..edge.catalogue import failures
from ..probes.engine_log import Cause, EngineLogs, Told
from ..probes.evidence.world import world_of
from ..probes.packages import PythonPackages
from ..readiness.diagnosis import came_up
from ..readiness.engine_log import Phase, progress
from ..readiness.failures import CONSEQUENCE, Case, Match, diagnose, last_words, telling
from ..readiness.log_lines import lines_of, shown
from .ready import case_for

LASTING = ("network", "transfer")
"""Families of which a fault that only may be one goes on when an engine has come up: it is slow."""

_FAULT = re.compile(
    r"Traceback \(most recent|\b(ERROR|FATAL|CRITICAL)\b|^(\([^)]*\) )?[\w.]*(Error|Exception): "
    r"|panicked at|Segmentation fault|core dumped|\bKilled$"
)
"""How a line looks that surely tells of a fault, known or not."""


def case_world(
    facts: Mapping[str, object],
    target: Mapping[str, object] | None,
    kinds: Mapping[str, Kind],
    host: Host | None = None,
) -> World:
    """Return the world of a case; arguments as those of `world_of`."""
    world = world_of(facts, target, kinds, host)
    reading = world.facts[EngineLogs]
    if not isinstance(reading, Known):
        return world
    case = _case(world)
    logs = tuple(replace(log, told=told_by(log.text, case)) for log in reading.value.logs)
    explained = Known(EngineLogs(logs), reading.evidence)
    return replace(world, facts=world.facts.replace(EngineLogs, explained))


def _case(world: World) -> Case:
    """Return what is known besides the logs; packages that somebody listed outweigh a wish."""
    case = case_for(world.deployment) if world.deployment else Case()
    packages = world.facts[PythonPackages]
    listed = packages.value.versions if isinstance(packages, Known) else {}
    return replace(case, versions={**case.versions, **listed})


def told_by(log: str, case: Case) -> Told:
    """Return what a log tells, by the catalogue of failures."""
    lines = lines_of(log)
    now, up = progress(lines), came_up(lines)
    matches = diagnose(failures(), lines, case)
    found = [match for match in matches if _counts(match, is_up=bool(up))]
    has_ended = any(match.failure.weight <= CONSEQUENCE for match in matches)
    is_odd = not found and (has_ended or any(map(_FAULT.search, telling(lines))))
    return Told(
        tuple(map(_cause, found)),
        shown(up),
        now.phase is Phase.SERVING,
        str(now) if now.line else "",
        last_words(lines, 2) if is_odd and not up else (),
    )


def _counts(match: Match, *, is_up: bool) -> bool:
    """Tell whether a match is a cause: no consequence, nothing that the engine went on from."""
    failure = match.failure
    if failure.weight <= CONSEQUENCE or match.follows:
        return False
    if match.mere and not any("INFO" in pattern.pattern for pattern in failure.says):
        return False
    return match.is_certain or not is_up or failure.family in LASTING


def _cause(match: Match) -> Cause:
    failure = match.failure
    remedy = f"{match.fix}: {match.command}" if match.command else match.fix
    return Cause(
        failure.id, failure.title, match.evidence, match.cause, remedy, match.is_certain,
        failure.checks,
    )  # fmt: skip
