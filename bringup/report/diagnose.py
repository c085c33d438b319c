"""A diagnosis as people read it: what, the line that shows it, why, what to do, which command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..core.document import plain
from ..core.rules import Level
from ..readiness.diagnosis import Diagnosis
from ..readiness.failures import CONSEQUENCE, Match, addressed
from .probe import finding_view

SHOWN = 3
"""Causes that are shown whole; the others by name."""


def match_view(match: Match, names: Mapping[str, str] | None = None) -> RenderableType:
    """Return one cause, whole."""
    failure = match.failure
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=9, style="dim")
    grid.add_column(overflow="fold")
    sure, colour = _label(match)
    title = Text(failure.title, style="bold").append(f"  {failure.id}", style="dim")
    grid.add_row(Text(sure, style=f"bold {colour}"), title)
    place = f"line {match.line}: " if match.line else ""
    grid.add_row("saw", Text(f"{place}{match.evidence}"))
    for finding in match.backed_by:
        where = f"{finding.id} on {finding.host}" if finding.host else finding.id
        grid.add_row("check", Text(f"{where}: {'; '.join(finding.evidence)}"))
    grid.add_row("because", Text(match.cause))
    grid.add_row("do", Text(addressed(match.fix, names or {}), style="green"))
    if match.command:
        grid.add_row("run", Text(addressed(match.command, names or {})))
    return Padding(grid, (0, 0, 0, 2))


def _label(match: Match) -> tuple[str, str]:
    if match.follows or match.failure.weight <= CONSEQUENCE:
        return "follows", "cyan"
    return ("cause", "red") if match.is_certain else ("likely", "yellow")


def diagnosis_view(
    matches: Iterable[Match], names: Mapping[str, str] | None = None
) -> RenderableType:
    """Return the likeliest causes whole, and the rest by name."""
    found = tuple(matches)
    rows: list[RenderableType] = [match_view(match, names) for match in found[:SHOWN]]
    if rest := [match.failure.id for match in found[SHOWN:]]:
        rows.append(Text(f"  also told: {', '.join(rest)}", "dim"))
    return Group(*rows)


def unknown_view(lines: Iterable[str]) -> RenderableType:
    """Return the last telling lines of a log that no row of the catalogue knows."""
    text = _last("  unknown   no known cause; it said last", lines, "yellow")
    return text.append(
        "\n  do        a cause you find is one row: docs/serve.md#a-new-wall", "green"
    )


def _last(head: str, lines: Iterable[str], style: str) -> Text:
    """Return lines of a log under a head, each on its line."""
    text = Text(head, style, no_wrap=True, overflow="ignore")
    return text.append("".join(f"\n            {line}" for line in lines), "default not dim")


def match_document(match: Match, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a cause as plain data."""
    failure = match.failure
    return {
        "id": failure.id,
        "title": failure.title,
        "certain": match.is_certain,
        "follows": match.follows,
        "evidence": match.evidence,
        "line": match.line,
        "backed_by": [finding.id for finding in match.backed_by],
        "cause": match.cause,
        "fix": addressed(match.fix, names or {}),
        "command": addressed(match.command, names or {}),
        "checks": list(failure.checks),
        "sources": list(failure.sources),
    }


def diagnosis_block(one: Diagnosis, *, with_source: bool) -> RenderableType:
    """Return what was found of one log or worker, under its name and how it stands."""
    rows: list[RenderableType] = []
    if with_source or one.stands:
        colour = "green" if one.is_well else "yellow"
        rows.append(
            Text(one.source, "bold").append(f"  {one.stands}" if one.stands else "", colour)
        )
    rows += [finding_view(finding) for finding in one.findings if finding.level is not Level.OK]
    if one.matches:
        rows.append(diagnosis_view(one.matches, one.words))
    is_open = not (one.matches or one.findings or one.is_well or one.stands)
    if one.said and one.is_loading:
        rows.append(_last("  loads     it said last", one.said, "dim"))
    elif one.said or is_open:
        rows.append(unknown_view(one.said))
    return Group(*rows)


def diagnosis_document(one: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as plain data."""
    return {
        "schema": "bringup.diagnosis/1",
        "source": one.source,
        "stands": one.stands,
        "well": one.is_well,
        "loading": one.is_loading,
        "causes": [match_document(match, one.words) for match in one.matches],
        "findings": plain(one.findings),
        "said": list(one.said),
    }
