"""Plans and receipts as text for people. No decisions are made here."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .core.knobs import Decision
from .core.plan import Plan, Planned, difference
from .core.receipt import Done, Outcome, Receipt
from .core.rules import Finding, Level, Status, Verdict
from .core.steps import State

COLOR = {
    Level.BLOCK: "red",
    Level.WARN: "yellow",
    Level.NOTE: "cyan",
    Level.OK: "green",
    Verdict.READY: "green",
    Verdict.DEGRADED: "yellow",
    Verdict.BLOCKED: "red",
    Verdict.UNKNOWN: "magenta",
}

GRAVITY = (Level.BLOCK, Level.WARN, Level.NOTE, Level.OK)


def heading(host: str, what: str, verdict: Verdict | None = None) -> RenderableType:
    """Return the line that opens a host's part."""
    line = Text("\n").append(host, style="bold").append(f"  {what}")
    if verdict is not None:
        line.append("  ").append(verdict.value, style=f"bold {COLOR[verdict]}")
    return line


def findings_view(findings: Iterable[Finding]) -> RenderableType:
    """Return the findings that matter, gravest first; what passed is one line of counts."""
    found = tuple(findings)
    shown = sorted(
        (f for f in found if f.level is not Level.OK), key=lambda f: GRAVITY.index(f.level)
    )
    calm = [f for f in found if f.level is Level.OK]
    rows = [_finding(finding) for finding in shown]
    counts = {
        status: sum(f.status is status for f in calm) for status in (Status.PASS, Status.SKIP)
    }
    rows.append(Text(f"  {counts[Status.PASS]} passed, {counts[Status.SKIP]} do not apply", "dim"))
    return Group(*rows)


def _finding(finding: Finding) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=9, style="dim")
    grid.add_column(overflow="fold")
    color = COLOR[finding.level]
    word = "unknown" if finding.status is Status.UNKNOWN else finding.level.value
    title = Text(finding.title, style="bold").append(f"  {finding.id}", style="dim")
    grid.add_row(Text(word, style=f"bold {color}"), title)
    for line in finding.evidence[:4]:
        grid.add_row("saw", Text(line))
    if len(finding.evidence) > 4:
        grid.add_row(
            "", Text(f"and {len(finding.evidence) - 4} lines more (--json shows all)", "dim")
        )
    grid.add_row("because", Text(finding.reason))
    if finding.remedy:
        grid.add_row("do", Text(finding.remedy, style="green"))
    if finding.follow_up:
        grid.add_row("later", Text(finding.follow_up))
    return Padding(grid, (0, 0, 0, 2))


def decisions_view(decisions: Iterable[Decision]) -> RenderableType:
    """Return every knob that is not at its default, with whose word it is."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold", max_width=34)
    grid.add_column(overflow="fold")
    for decision in decisions:
        if decision.by == "default":
            continue
        because = f"{decision.by}: {decision.because}" if decision.because else decision.by
        lost = "".join(f"; overruled {o.by} ({o.value})" for o in decision.overruled)
        grid.add_row(decision.knob, str(decision.value), Text(because + lost, style="dim"))
    return Padding(grid, (0, 0, 0, 2))


MARK = {State.SAME: ("=", "dim"), State.CHANGE: ("~", "yellow"), State.UNKNOWN: ("?", "magenta")}


def plan_view(plan: Plan, *, diff: bool) -> RenderableType:
    """Return each step with its state, and the difference that it would make."""
    rows: list[RenderableType] = []
    for planned in plan.steps:
        mark, style = MARK[planned.observation.state]
        absent = planned.observation.found == "absent"
        line = Text(f"  {'+' if absent else mark} ", style=style).append(planned.step.title)
        rows.append(line.append(f"  {_state(planned)}", style="dim"))
        if diff and (text := difference(planned)):
            rows.append(Padding(diff_view(text), (0, 0, 0, 4)))
    return Group(*rows) if rows else Text("  nothing is wanted on this host", style="dim")


def _state(planned: Planned) -> str:
    seen = planned.observation
    if seen.state is State.SAME:
        return "already there"
    if seen.state is State.UNKNOWN:
        return f"unknown: {seen.why}"
    return "new" if seen.found == "absent" else f"differs: {_short(seen.found)}"


def _short(found: str) -> str:
    """Return a found state with long sums cut, as people compare them."""
    return " ".join(word[:12] if len(word) > 40 else word for word in found.split())


def diff_view(text: str) -> RenderableType:
    """Return a unified diff in colour."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    body = Text(no_wrap=False, overflow="fold")
    for line in text.splitlines(keepends=True):
        body.append(line, style=styles.get(line[:1], ""))
    return body


OUTCOME = {
    Outcome.SAME: "dim",
    Outcome.CHANGED: "green",
    Outcome.FAILED: "bold red",
    Outcome.NOT_REACHED: "yellow",
}


def receipt_view(receipt: Receipt) -> RenderableType:
    """Return how each step ended."""
    return Group(*(_done(done) for done in receipt.steps if done.outcome is not Outcome.SAME))


def _done(done: Done) -> RenderableType:
    line = Text(f"  {done.outcome.value:<12}", style=OUTCOME[done.outcome])
    return line.append(f"{done.id}  ").append(f"{done.seconds:.1f} s", style="dim")
