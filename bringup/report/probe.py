"""How a probe reads: the verdict, findings by gravity with evidence and remedy, then facts.

Made for 80 columns at 3 a.m.: what many hosts share is said once, and a hundred hosts fit a screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..core.errors import alike
from ..core.probed import (
    FactRow,
    Folded,
    Probed,
    Variant,
    by_verdict,
    counts,
    fact_rows,
    folded,
)
from ..core.rules import Finding, Level, Status
from ..edge.names import fold
from .findings import COLOR
from .grid import pairs

VARIANTS = 3
"""How many different sets of lines one finding shows; --json has all."""

LINES = 4
"""How many lines of evidence each of them shows."""


def probe_view(probed: Iterable[Probed], *, facts: bool = True, now: str = "") -> RenderableType:
    """Return a whole probe for people; `now` is when it was made, to tell the age of old facts."""
    every = tuple(probed)
    rows: list[RenderableType] = [_verdicts(every), *_errors(every, now)]
    rows += [_title("findings"), findings_view(every)]
    seen = sum(bool(one.facts.readings) for one in every)
    if facts and seen:
        rows += [_title("facts"), _facts(fact_rows(every), seen)]
    return Group(*rows)


def findings_view(probed: Iterable[Probed]) -> RenderableType:
    """Return the findings that matter, gravest first, and one line of counts for the others."""
    every = tuple(probed)
    return Group(*(_finding(each, len(every)) for each in folded(every)), _calm(every))


def finding_view(finding: Finding) -> RenderableType:
    """Return one finding by itself: what, the lines that show it, why, and what to do."""
    variant = Variant((), finding.evidence, finding.remedy)
    return _finding(Folded(finding, (), (variant,)), 0)


def _title(text: str) -> RenderableType:
    return Text(f"\n{text}", "bold underline")


def age(then: str, now: str) -> str:
    """Return how long ago a moment was, in words, and the moment itself; "" for no moment."""
    try:
        began, ended = datetime.fromisoformat(then), datetime.fromisoformat(now)
    except ValueError:
        return then
    seconds = int((ended - began).total_seconds())
    for size, word in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {word} ago ({then})"
    return f"{seconds} seconds ago ({then})"


def _verdicts(probed: tuple[Probed, ...]) -> RenderableType:
    grid = pairs(names=9, gap=1)
    machines = {one.host for one in probed if one.is_host}
    for found, names in by_verdict(probed).items():
        count = len(machines.intersection(names))
        line = Text(fold(names)).append(f"  {count} hosts" if count > 1 else "", "dim")
        grid.add_row(Text(found.value, f"bold {COLOR[found]}"), line)
    return grid


def _errors(probed: tuple[Probed, ...], now: str) -> Iterator[RenderableType]:
    """Yield why hosts were not looked at, those with one trouble together."""
    errors = [one.error.at(host=one.host) for one in probed if one.error is not None]
    last_seen = {one.host: one.last_seen for one in probed}
    for group in alike(errors):
        hosts = [each.host for each in group]
        grid = pairs(names=9, gap=1)
        grid.add_row(Text("not seen", "bold magenta"), Text(fold(hosts), "bold"))
        grid.add_row("because", Text(group[0].message))
        if group[0].remedy:
            grid.add_row("do", Text(group[0].remedy, "green"))
        if seen := age(max(last_seen[host] for host in hosts), now):
            grid.add_row("last seen", Text(seen))
        yield Padding(grid, (0, 0, 0, 2))


def _finding(each: Folded, count: int) -> RenderableType:
    finding = each.finding
    word = "unknown" if finding.status is Status.UNKNOWN else finding.level.value
    where = "all hosts" if len(each.hosts) == count > 1 else fold(each.hosts)
    grid = pairs(names=9, gap=1)
    title = Text(finding.title, "bold").append(f"  {finding.id}  {where}", "dim")
    grid.add_row(Text(word, f"bold {COLOR[finding.level]}"), title)
    for label, line, style in _lines(each):
        grid.add_row(label, Text(line, style))
    if finding.level is not Level.NOTE:
        grid.add_row("because", Text(finding.reason))
    for remedy in dict.fromkeys(v.remedy for v in each.variants[:VARIANTS] if v.remedy):
        grid.add_row("do", Text(remedy, "green"))
    if finding.follow_up:
        grid.add_row("later", Text(finding.follow_up))
    return Padding(grid, (0, 0, 1, 2))


def _lines(each: Folded) -> Iterator[tuple[str, str, str]]:
    """Yield the evidence: label, line, style. Hosts are named where they saw different things."""
    is_one = len(each.variants) == 1
    for variant in each.variants[:VARIANTS]:
        if not is_one:
            yield "on", fold(variant.hosts), "bold"
        for line in variant.evidence[:LINES]:
            yield "saw", line, ""
        if len(variant.evidence) > LINES:
            yield "", f"and {len(variant.evidence) - LINES} lines more (--json shows all)", "dim"
    rest = [host for variant in each.variants[VARIANTS:] for host in variant.hosts]
    if rest:
        yield "", f"and other lines on {fold(rest)} (--json shows all)", "dim"


def _calm(probed: tuple[Probed, ...]) -> RenderableType:
    told = counts(probed)
    line = f"  {told['pass']} passed, {told['skip']} do not apply, {told['unknown']} not asked"
    return Text(line, "dim")


STYLE = {"known": "", "absent": "dim", "unknown": "magenta"}


def _facts(rows: Iterable[FactRow], count: int) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=20, style="dim", overflow="fold")
    grid.add_column(overflow="fold")
    by_name: dict[str, list[FactRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    for name, own in by_name.items():
        for place, row in enumerate(own[:VARIANTS]):
            where = "" if len(row.hosts) == count else f"{fold(row.hosts)}: "
            state = "" if row.state == "known" else f"{row.state}: "
            text = Text(where, "bold").append(f"{state}{_short(row.text)}", STYLE[row.state])
            grid.add_row(name if place == 0 else "", text)
        if len(own) > VARIANTS:
            rest = [host for row in own[VARIANTS:] for host in row.hosts]
            grid.add_row("", Text(f"and other answers of {fold(rest)}", "dim"))
    return Padding(grid, (0, 0, 0, 2))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:157]}…"
