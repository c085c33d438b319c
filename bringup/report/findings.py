"""Findings, plans and receipts as text for people. No decisions are made here."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ..core.plan import Plan, Planned, difference
from ..core.receipt import Done, Outcome, Receipt
from ..core.rules import Level, Verdict
from ..core.steps import State

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
            rows.append(diff_view(text, indent=4))
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


def diff_view(text: str, *, indent: int = 0) -> RenderableType:
    """Return a unified diff in colour, its lines whole: they are there to be pasted."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    body = Text(no_wrap=True, overflow="ignore")
    for line in text.splitlines():
        body.append(f"{' ' * indent}{line}\n", style=styles.get(line[:1], ""))
    return body


OUTCOME = {
    Outcome.SAME: "dim",
    Outcome.CHANGED: "green",
    Outcome.FAILED: "bold red",
    Outcome.BEGUN: "bold red",
    Outcome.NOT_REACHED: "yellow",
}


def receipt_view(receipt: Receipt) -> RenderableType:
    """Return how each step ended."""
    return Group(*(_done(done) for done in receipt.steps))


def _done(done: Done) -> RenderableType:
    line = Text(f"  {done.outcome.value:<12}", style=OUTCOME[done.outcome])
    spent = "" if done.outcome is Outcome.SAME else f"{done.seconds:.1f} s"
    return line.append(f" {done.id}  ").append(spent, style="dim")
