"""How fixes read: what was done or would be, then what is left to a person, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..core.fixes import Fix
from ..core.outcome import Ended
from ..core.receipt import Outcome, Receipt
from ..core.rules import Finding, Level
from .alike import by_host
from .findings import receipt_view


def fixes_view(ended: Iterable[Ended], *, check: bool) -> RenderableType:
    """Return the fixes of every host; nothing where none were asked for."""
    told = {one.host: tuple(_host(one, check=check)) for one in ended if one.fixes}
    return Group(Text("\nfixes", "bold underline"), *by_host(told)) if told else Group()


def _host(ended: Ended, *, check: bool) -> Iterator[RenderableType]:
    for round_ in ended.rounds:
        if round_.receipt is not None:
            yield receipt_view(_told(round_.receipt))
            yield Text(f"  receipt      {round_.record}", "dim")
    yield from _outcome(ended)
    for finding in ended.lifted:
        away = ", ".join(f"{knob} {value}" for knob, value in finding.decide.items())
        line = Text(f"  ↑  {finding.id}  ", "green").append(lifted_words(finding))
        yield line.append(f"  (no more: {away})", "dim")
    for fix in ended.fixes:
        if fix.is_taken and (check or not ended.rounds):
            yield _line("+" if check else "=", fix, fix.cost)
    yield from _waiting([fix for fix in ended.fixes if fix.after and not fix.is_taken])
    left = [fix for fix in ended.fixes if not fix.is_taken and not fix.after]
    if left:
        where = f"bringup's commands here, the others as root on {ended.host}"
        yield Text(f"  left to you, in this order ({where}):", "yellow")
    for number, fix in enumerate(left, 1):
        yield _line(f"{number}.", fix, fix.withheld)
        for command in fix.commands:
            yield Text(f"       {command}", no_wrap=True, overflow="ignore")


def _waiting(fixes: Iterable[Fix]) -> Iterator[RenderableType]:
    """Yield what others may clear: nobody needs to lend a hand before the next look."""
    for number, fix in enumerate(fixes):
        if not number:
            yield Text("  looked at again once these are done:", "dim")
        yield _line("?", fix, f"after {', '.join(fix.after)}")


def _outcome(ended: Ended) -> Iterator[RenderableType]:
    """Tell which findings are gone after fixing, and which still stand though all was done."""
    if not ended.rounds or ended.plan is None or ended.plan is ended.rounds[-1].plan:
        return  # nobody has looked since
    now = {f.id: f for f in ended.plan.findings if f.level is not Level.OK}
    done = [fix for fix in ended.fixes if fix.is_taken]
    gone = [fix.finding.id for fix in done if fix.finding.id not in now]
    if gone:
        yield Text(f"  mended       {', '.join(gone)}", "green")
    for fix in done:
        if fix.finding.id in now:
            seen = next(iter(now[fix.finding.id].evidence), "")
            why = f"  ({fix.cost})" if fix.cost else ""
            yield Text(f"  still there  {fix.finding.id}  {seen}", "yellow").append(why, "dim")


def _told(receipt: Receipt) -> Receipt:
    """Leave out what was so before, and what a failure put off to the next round."""
    told = (Outcome.CHANGED, Outcome.FAILED)
    return replace(receipt, steps=tuple(done for done in receipt.steps if done.outcome in told))


def _line(mark: str, fix: Fix, note: str) -> RenderableType:
    title = fix.title or fix.finding.title
    line = Text(f"  {mark:<3}{fix.finding.id}  {title}")
    return line.append(f"  ({note})" if note else "", "dim")


def lifted_words(finding: Finding) -> str:
    """Return how it is told that a fallback is no longer needed."""
    return finding.lifted or f"no longer needed: {finding.title}"


def fix_document(fix: Fix) -> dict[str, Any]:
    """Return one fix as plain data."""
    return {
        "finding": fix.finding.id,
        "title": fix.title or fix.finding.title,
        "risk": fix.risk.words,
        "cost": fix.cost or None,
        "taken": fix.is_taken,
        "withheld": fix.withheld or None,
        "after": list(fix.after),
        "steps": [step.id for step in fix.steps],
        "commands": list(fix.commands),
    }
