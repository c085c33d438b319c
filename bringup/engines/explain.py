"""Explain a rule, a knob or a flag: the chain from a fact to a word on a command line. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import UsageError
from ..core.knobs import Decision, Knob, Merge, agree, largest, smallest
from ..core.nearest import did_you_mean
from ..core.rules import Finding, Row
from ..core.words import Secret
from ..rules import CHECKS, advice, deployment, fallbacks, pairs
from .check import KINDS
from .collect import engines
from .engine import Engine, Setting, plainly
from .explain_listed import versions_of, words
from .knobs import KNOBS
from .quirks import QUIRKS
from .spec import Spec

MERGES: Mapping[Merge, str] = {
    agree: "must agree",
    largest: "the largest wins",
    smallest: "the smallest wins",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What something is and where it comes from: a title and labelled lines in order."""

    title: str
    lines: tuple[tuple[str, str], ...] = ()
    source: str = ""
    below: tuple[Explanation, ...] = field(default=())


def rules() -> Mapping[str, Row[Any]]:  # Any: rows of one host and rows across hosts alike
    """Return every check and rule by id."""
    rows: tuple[Row[Any], ...] = (
        *CHECKS, *fallbacks.ROWS, *advice.ROWS, *deployment.ROWS, *pairs.ROWS,
    )  # fmt: skip
    return {row.id: row for row in rows}


def contents() -> tuple[Explanation, ...]:
    """Return the names that there are to explain, with a line each: checks, rules, knobs."""
    checks = tuple((row.id, row.title) for row in CHECKS)
    others = tuple(
        (id_, row.title) for id_, row in rules().items() if (id_, row.title) not in checks
    )
    knobs = tuple((knob.name, knob.help) for knob in KNOBS.values())
    titles = (("checks", checks), ("rules", others), ("knobs", knobs))
    return tuple(Explanation(title, lines) for title, lines in titles)


def explain(name: str) -> Explanation:
    """Return what a rule, a knob, a flag or a finding on a command line is about.

    Raises UsageError with the nearest names for one that nobody knows.
    """
    known = rules()
    if name in known:
        return explain_rule(name)
    if name in KNOBS:
        return explain_knob(name)
    spelled = {name, f"--{name}"}
    settings = [s for s in _settings() if spelled & {s[1].flag, s[1].off, s[1].variable}]
    if settings:
        return explain_knob(settings[0][1].knob)
    for quirk in QUIRKS:
        if quirk.id == name:
            lines = (("reason", quirk.reason), ("holds for", _span(quirk.package or "every engine",
                                                                   quirk.since, quirk.until)),
                     ("do", quirk.remedy))  # fmt: skip
            return Explanation(quirk.title, lines, quirk.source)
    if name in KINDS:
        level, title, reason = KINDS[name]
        return Explanation(f"{name}: {title}", (("level", level.value), ("reason", reason)),
                           "docs/engines.md#what-each-version-accepts")  # fmt: skip
    if listed := versions_of(name):
        return Explanation(name, listed, "docs/engines.md#what-each-version-accepts")
    names = {*known, *KNOBS, *words(), *KINDS, *(quirk.id for quirk in QUIRKS)}
    raise UsageError(
        f"cannot explain {name!r}{did_you_mean(name, names)}",
        remedy="bringup explain lists every check, rule and knob",
    )


def explain_rule(name: str) -> Explanation:
    """Return a row's reason, remedy, and what would lift it."""
    row = rules()[name]
    lines = [("reason", row.reason)]
    lines += [("do", row.remedy)] if row.remedy else []
    lines += [("lifts", row.follow_up)] if row.follow_up else []
    return Explanation(f"{row.id}: {row.title}", tuple(lines), row.source)


def explain_knob(name: str) -> Explanation:
    """Return a knob's meaning, its default, and how each engine spells it."""
    knob = KNOBS[name]
    default = "the engine decides" if knob.default is None else plainly(knob.default)
    unit = f", {knob.unit}" if knob.unit else ""
    lines = [
        ("meaning", knob.help),
        ("type", f"{knob.type.__name__}{unit}"),
        ("default", default),
        ("two opinions", MERGES.get(knob.merge, "see the table")),
    ]
    lines += [("choices", ", ".join(knob.choices))] if knob.choices else []
    lines += list(_spellings(knob))
    return Explanation(f"knob {name}", tuple(lines))


def _settings() -> Iterator[tuple[Engine, Setting]]:
    for engine in engines().values():
        for setting in engine.settings:
            yield engine, setting


def _spellings(knob: Knob) -> Iterator[tuple[str, str]]:
    for engine, setting in _settings():
        if setting.knob == knob.name:
            word = setting.flag or setting.variable or setting.off
            when = _span("", setting.since, setting.until)
            yield engine.name, f"{word} {when}".strip()


def _span(package: str, since: str, until: str) -> str:
    words = [package, f"from {since}" if since else "", f"before {until}" if until else ""]
    return " ".join(word for word in words if word)


def explain_flag(name: str, spec: Spec, findings: Iterable[Finding] = ()) -> Explanation:
    """Return why a flag or variable stands on a worker's command line: the chain to the fact.

    `findings` are those of the worker's host; raises UsageError where the flag does not stand.
    """
    why = spec.command.why
    if name not in why:
        there = f"cannot explain {name!r}: not on the command line of {spec.name} on {spec.host}"
        raise UsageError(
            f"{there}{did_you_mean(name, why)}", remedy=f"see the flags that are: {spec.script}"
        )
    decision = _decision(name, spec)
    lines = [("stands in", f"{spec.script} on {spec.host}")]
    if decision is None:
        lines += [("because", line) for line in why[name]]
        return Explanation(_shown(name, spec), tuple(lines))
    lines += list(_chain(decision))
    rows = tuple(f for f in findings if f"rule {f.id}" in decision.by.split(" and "))
    return Explanation(_shown(name, spec), tuple(lines), "", tuple(map(_of, rows)))


def explain_knob_on(knob: str, spec: Spec, findings: Iterable[Finding] = ()) -> Explanation:
    """Return why a knob is settled as it is for a worker: the chain to the fact."""
    decision = spec.decisions[knob]
    rows = tuple(f for f in findings if f"rule {f.id}" in decision.by.split(" and "))
    lines = (("worker", f"{spec.name} on {spec.host}"), *_chain(decision))
    return Explanation(f"{knob} = {plainly(decision.value)}", lines, "", tuple(map(_of, rows)))


def _decision(name: str, spec: Spec) -> Decision | None:
    settings = engines()[spec.engine].settings if spec.engine in engines() else ()
    knobs = [s.knob for s in settings if name in (s.flag, s.off, s.variable)]
    return next((spec.decisions[knob] for knob in knobs if knob in spec.decisions), None)


def _shown(name: str, spec: Spec) -> str:
    if name in spec.command.env:
        value = spec.command.env[name]
        return f"{name}={'***' if isinstance(value, Secret) else value}"
    words = [str(word) for word in spec.command.argv]
    after = words[words.index(name) + 1 : words.index(name) + 2] if name in words else []
    return " ".join([name, *(word for word in after if not word.startswith("--"))])


def _chain(decision: Decision) -> Iterator[tuple[str, str]]:
    default = "the engine decides" if decision.default is None else plainly(decision.default)
    yield "knob", f"{decision.knob} = {plainly(decision.value)} (default: {default})"
    yield "said", decision.by
    if decision.because:
        yield "because", decision.because
    for lost in decision.overruled:
        yield "overrules", f"{plainly(lost.value)}, said {lost.by}"


def _of(finding: Finding) -> Explanation:
    """What was seen, and why that leads here."""
    lines = [("seen", line) for line in finding.evidence]
    lines.append(("reason", finding.reason))
    lines += [("do", finding.remedy)] if finding.remedy else []
    lines += [("lifts", finding.follow_up)] if finding.follow_up else []
    return Explanation(f"rule {finding.id}", tuple(lines), finding.source)
