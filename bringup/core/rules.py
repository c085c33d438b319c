"""Checks and rules: rows of a table that look at a world and say what they saw.

A *check* asks whether a host is well (pass, warn, fail, unknown, skip). A *rule* turns facts into
choices for a deployment. Both give a `Finding` with the evidence, the reason and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from .facts import Facts
from .host import Deployment, Host, Kind, Role, Scalar

W = TypeVar("W")


class Status(Enum):
    """What a check saw. UNKNOWN is neither pass nor fail; SKIP does not apply, and says why."""

    PASS = "pass"  # noqa: S105 - a status, no password
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


class Level(Enum):
    """What a finding means for the work at hand."""

    BLOCK = "block"  # stop before any change
    WARN = "warn"  # works with a fallback, or in part
    NOTE = "note"  # good to know
    OK = "ok"


@dataclass(frozen=True, slots=True)
class World:
    """All that a check or rule may look at: one host, and what it is to serve, if known."""

    host: Host
    facts: Facts
    kind: Kind | None = None
    deployment: Deployment | None = None
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """A deployment with the worlds of all its hosts, for rules across hosts."""

    deployment: Deployment
    worlds: Mapping[str, World]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a test saw: a status, the lines that show it, and choices that follow from it."""

    status: Status
    evidence: tuple[str, ...] = ()
    decide: Mapping[str, Scalar] = field(default_factory=dict)
    level: Level | None = None  # when it differs from what the status means for this row
    remedy: str = ""  # when the exact command depends on what was seen


def passed(*evidence: str) -> Seen:
    return Seen(Status.PASS, evidence)


def warned(*evidence: str, **more: object) -> Seen:
    return Seen(Status.WARN, evidence, **more)  # type: ignore[arg-type]


def failed(*evidence: str, **more: object) -> Seen:
    return Seen(Status.FAIL, evidence, **more)  # type: ignore[arg-type]


def unknown(why: str, *evidence: str) -> Seen:
    return Seen(Status.UNKNOWN, (f"unknown: {why}", *evidence))


def skipped(why: str) -> Seen:
    return Seen(Status.SKIP, (why,))


@dataclass(frozen=True, slots=True)
class Row(Generic[W]):
    """One check or rule. `look` is pure; None means that a rule has nothing to say.

    `levels` says what each status means; a status that is missing there is taken from `MEANING`.
    `source` is a link or a file under docs/ with the evidence.
    """

    id: str
    title: str
    look: Callable[[W], Seen | None]
    reason: str
    source: str
    remedy: str = ""
    levels: Mapping[Status, Level] = field(default_factory=dict)
    follow_up: str = ""  # what would lift the fallback again
    lifted: str = ""  # how it is told that the fallback is no longer needed


MEANING: Mapping[Status, Level] = {
    Status.PASS: Level.OK,
    Status.SKIP: Level.OK,
    Status.WARN: Level.WARN,
    Status.FAIL: Level.BLOCK,
    Status.UNKNOWN: Level.WARN,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a row said about one host (or about a deployment, then `host` is empty)."""

    id: str
    title: str
    status: Status
    level: Level
    host: str
    evidence: tuple[str, ...]
    reason: str
    remedy: str
    source: str
    decide: Mapping[str, Scalar] = field(default_factory=dict)
    follow_up: str = ""
    lifted: str = ""


def judge(rows: Iterable[Row[W]], world: W, *, host: str = "") -> tuple[Finding, ...]:
    """Return the findings of all rows that have something to say, in the order of the table."""
    findings = (_finding(row, row.look(world), host) for row in rows)
    return tuple(finding for finding in findings if finding is not None)


def _finding(row: Row[W], seen: Seen | None, host: str) -> Finding | None:
    if seen is None:
        return None
    level = seen.level or row.levels.get(seen.status) or MEANING[seen.status]
    remedy = "" if level is Level.OK else seen.remedy or _remedy(row, seen.status)
    return Finding(
        row.id, row.title, seen.status, level, host, seen.evidence, row.reason, remedy, row.source,
        seen.decide, row.follow_up, row.lifted,
    )  # fmt: skip


LOOK_AGAIN = "see why nobody could look, mend that, and look again"


def _remedy(row: Row[W], status: Status) -> str:
    """Return what to do; what nobody saw is not mended as if it were broken."""
    return LOOK_AGAIN if status is Status.UNKNOWN and row.remedy else row.remedy


class Verdict(Enum):
    """What all findings on a host come to."""

    READY = "ready"
    DEGRADED = "degraded"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


def verdict(findings: Iterable[Finding]) -> Verdict:
    """Return the verdict: a block outweighs an unknown that matters, that outweighs a warning.

    A host of which nothing good was seen is not ready: it is unknown.
    """
    found = tuple(findings)
    if any(f.level is Level.BLOCK and f.status is not Status.UNKNOWN for f in found):
        return Verdict.BLOCKED
    if any(f.level is Level.BLOCK for f in found):
        return Verdict.UNKNOWN
    if any(f.level is Level.WARN and f.status is not Status.UNKNOWN for f in found):
        return Verdict.DEGRADED
    is_blank = any(f.status is Status.UNKNOWN for f in found) and not any(
        f.status is Status.PASS for f in found
    )
    return Verdict.UNKNOWN if is_blank else Verdict.READY
