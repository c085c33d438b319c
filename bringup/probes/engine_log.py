"""Logs of engines that somebody read, and what the catalogue of failures tells of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """A known way to fail that a log names, and the line that shows it.

    `is_certain`: surely why a start ended. `checks` are ids of checks that look at the same cause.
    """

    id: str
    title: str
    line: str
    why: str
    remedy: str
    is_certain: bool = False
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a log tells: known causes, the likeliest first, and how far the engine came.

    `up` is the line by which it serves, "" where it does not, or where faults follow. `said` are
    its last words where it tells of a fault and no cause is known.
    """

    causes: tuple[Cause, ...] = ()
    up: str = ""
    has_served: bool = False
    phase: str = ""
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineLog:
    """One log. `source` is how somebody read it, ``worker: docker logs serve``.

    `code` is the exit code of a start in the foreground. `told` is None until the catalogue of
    failures was asked.
    """

    source: str
    text: str
    code: int | None = None
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class EngineLogs:
    """The logs that were read; no probe asks for them by itself."""

    logs: tuple[EngineLog, ...]
