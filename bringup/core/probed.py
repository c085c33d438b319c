"""What a probe of hosts came to, and the same folded: what many hosts share is said once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .document import plain
from .errors import ToolError
from .facts import Facts
from .masking import without_secrets
from .reading import Absent, Known, Unknown
from .rules import Finding, Level, Status, Verdict, verdict

SCHEMA = "bringup.probe/1"
GRAVITY = (Level.BLOCK, Level.WARN, Level.NOTE, Level.OK)
WORST = (Verdict.BLOCKED, Verdict.UNKNOWN, Verdict.DEGRADED, Verdict.READY)


@dataclass(frozen=True, slots=True)
class Probed:
    """One host: what was found, or why nobody could look. A deployment as a whole is one too.

    `last_seen` is when a host that nobody could look at gave its newest kept answer, "" for never.
    """

    host: str
    findings: tuple[Finding, ...] = ()
    facts: Facts = field(default_factory=Facts)
    kind: str = ""
    error: ToolError | None = None
    last_seen: str = ""

    @property
    def is_host(self) -> bool:
        """Whether this is a host rather than a deployment as a whole."""
        return self.error is not None or bool(self.facts.readings)

    @property
    def verdict(self) -> Verdict:
        """A host that was not reached is unknown, never ready."""
        return Verdict.UNKNOWN if self.error is not None else verdict(self.findings)


@dataclass(frozen=True, slots=True)
class Variant:
    """The lines that some hosts showed for one finding, and what to do there."""

    hosts: tuple[str, ...]
    evidence: tuple[str, ...]
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Folded:
    """One finding of several hosts, its commonest evidence first."""

    finding: Finding
    hosts: tuple[str, ...]
    variants: tuple[Variant, ...]


def worst(probed: Iterable[Probed]) -> Verdict:
    """Return the verdict of many hosts: the worst one; unknown for none."""
    found = {one.verdict for one in probed}
    return next((each for each in WORST if each in found), Verdict.UNKNOWN)


def by_verdict(probed: Iterable[Probed]) -> Mapping[Verdict, tuple[str, ...]]:
    """Return the hosts of each verdict, worst first."""
    every = tuple(probed)
    rows = {each: tuple(one.host for one in every if one.verdict is each) for each in WORST}
    return {each: hosts for each, hosts in rows.items() if hosts}


def matters(finding: Finding) -> bool:
    """Return whether a finding is told in full: not what passed, nor what was never asked."""
    if finding.level is Level.NOTE:
        return finding.status is not Status.UNKNOWN
    return finding.level is not Level.OK


def folded(probed: Iterable[Probed]) -> tuple[Folded, ...]:
    """Return the findings that matter, gravest first, each once with all its hosts."""
    groups: dict[tuple[str, Status, Level], list[tuple[str, Finding]]] = {}
    for one in probed:
        for finding in filter(matters, one.findings):
            key = (finding.id, finding.status, finding.level)
            groups.setdefault(key, []).append((one.host, finding))
    found = (_folded(group) for group in groups.values())
    return tuple(sorted(found, key=lambda each: _rank(each.finding)))


def _rank(finding: Finding) -> tuple[int, bool]:
    return GRAVITY.index(finding.level), finding.status is Status.UNKNOWN


def _folded(group: list[tuple[str, Finding]]) -> Folded:
    variants: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for host, finding in group:
        lines = tuple(without_secrets(line) for line in finding.evidence)
        variants.setdefault((lines, without_secrets(finding.remedy)), []).append(host)
    ordered = sorted(variants.items(), key=lambda item: -len(item[1]))
    hosts = tuple(dict.fromkeys(host for host, _ in group))
    return Folded(
        group[0][1],
        hosts,
        tuple(Variant(tuple(own), lines, remedy) for (lines, remedy), own in ordered),
    )


def counts(probed: Iterable[Probed]) -> Mapping[str, int]:
    """Return how many findings passed, do not apply, or were never asked for."""
    calm = Counter(
        finding.status.value for one in probed for finding in one.findings if not matters(finding)
    )
    return {word: calm.get(word, 0) for word in ("pass", "skip", "unknown")}


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact in one line: its name, the line that shows it, and the hosts that share it."""

    name: str
    text: str
    state: str  # known, absent, unknown
    hosts: tuple[str, ...]


_TWICE = ("LaterLinkCounters",)
"""Facts that people need not see beside the one that they repeat."""


def fact_rows(probed: Iterable[Probed]) -> tuple[FactRow, ...]:
    """Return what was asked and answered, hosts with the same answer together."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in probed:
        for kind, reading in one.facts.readings.items():
            if kind.__name__ in _TWICE:
                continue
            state, text = _told(reading)
            if text != "not asked":
                groups.setdefault((words(kind.__name__), state, text), []).append(one.host)
    rows = (FactRow(name, text, state, tuple(h)) for (name, state, text), h in groups.items())
    return tuple(sorted(rows, key=lambda row: (row.name.lower(), -len(row.hosts))))


def _told(reading: object) -> tuple[str, str]:
    match reading:
        case Known():
            return "known", without_secrets(reading.evidence or "read")
        case Absent():
            return "absent", without_secrets(reading.evidence or "not there")
        case Unknown():
            return "unknown", without_secrets(reading.why)
    return "unknown", "not asked"


def words(name: str) -> str:
    """Return the name of a type in words: ContainerEngine → container engine."""
    if name == "InfiniBand":
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def document(probed: Iterable[Probed], *, tool: str, at: str = "") -> dict[str, Any]:
    """Return everything as plain data with its schema; `at` is when the hosts were looked at."""
    every = tuple(probed)
    return {
        "schema": SCHEMA,
        "tool": tool,
        "at": at,
        "verdict": worst(every).value,
        "hosts": [_host(one) for one in every],
    }


def _host(one: Probed) -> dict[str, Any]:
    return {
        "host": one.host,
        "kind": one.kind,
        "verdict": one.verdict.value,
        "error": {"message": one.error.message, "remedy": one.error.remedy} if one.error else None,
        "last_seen": one.last_seen or None,
        "findings": [plain(_clean(finding)) for finding in one.findings],
        "facts": _clean_data({k.__name__: plain(v) for k, v in one.facts.readings.items()}),
    }


def _clean(finding: Finding) -> Finding:
    lines = tuple(without_secrets(line) for line in finding.evidence)
    return replace(finding, evidence=lines, remedy=without_secrets(finding.remedy))


def _clean_data(value: Any) -> Any:  # noqa: ANN401 - JSON is what it is
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: _clean_data(item) for key, item in value.items()}
    return [_clean_data(item) for item in value] if isinstance(value, list) else value
