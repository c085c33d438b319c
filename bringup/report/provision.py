"""How a provision run reads: findings and decisions of all hosts, then each host's plan and end.

What several hosts share is said once, with their names folded: a pair or a hundred fit a screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..core.host import Scalar
from ..core.knobs import Decision
from ..core.outcome import Ended
from ..core.plan import Plan, difference
from ..core.plan import document as plan_document
from ..core.probed import Probed
from ..core.receipt import document as receipt_document
from ..core.rules import Verdict
from ..edge.names import fold
from .findings import COLOR, plan_view, receipt_view
from .fix import fix_document, lifted_words
from .probe import findings_view

MOST_VALUES = 3
"""How many values of one knob are shown; --json has all."""


def run_view(ended: Iterable[Ended], *, diff: bool, brief: bool = False) -> RenderableType:
    """Return a whole run. A brief one leaves out findings and decisions, unless they block."""
    every = tuple(ended)
    plans = [one.plan for one in every if one.plan is not None]
    told = [plan for plan in plans if not brief or plan.blocks]
    rows: list[RenderableType] = [_verdicts(plans)]
    if told:
        found = [Probed(plan.host, plan.findings) for plan in told]
        rows += [_title("findings"), findings_view(found), _title("decisions"), _decisions(told)]
    rows += [_title("plan"), *_plans(every, diff=diff)]
    return Group(*rows)


def _title(text: str) -> RenderableType:
    return Text(f"\n{text}", "bold underline")


def _verdicts(plans: Iterable[Plan]) -> RenderableType:
    by_verdict: dict[Verdict, list[str]] = {}
    for plan in plans:
        by_verdict.setdefault(plan.verdict, []).append(plan.host)
    line = Text("\nverdict" if by_verdict else "")
    for found, hosts in by_verdict.items():
        line.append(f"  {fold(hosts)} ").append(found.value, f"bold {COLOR[found]}")
    return line


def _decisions(plans: list[Plan]) -> RenderableType:
    """Return every knob that is not at its default: value, whose word it is, on which hosts."""
    hosts: dict[tuple[str, Scalar, str], list[str]] = {}
    firsts: dict[tuple[str, Scalar, str], Decision] = {}
    for plan in plans:
        for decision in plan.decisions:
            key = (decision.knob, decision.value, decision.by)
            if decision.by != "default":
                hosts.setdefault(key, []).append(plan.host)
                firsts.setdefault(key, decision)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold", ratio=2)
    grid.add_column(overflow="fold", ratio=3)
    for knob, keys in groupby(sorted(firsts, key=lambda key: (key[0], hosts[key])), lambda k: k[0]):
        own = list(keys)
        for key in own[:MOST_VALUES]:
            where = "" if len(set(hosts[key])) == len(plans) else f"{fold(hosts[key])}: "
            grid.add_row(knob, Text(str(key[1])), Text(where + _why(firsts[key]), "dim"))
        if rest := [host for key in own[MOST_VALUES:] for host in hosts[key]]:
            others = f"{fold(rest)}: {len(own) - MOST_VALUES} other values (--json shows all)"
            grid.add_row("", "", Text(others, "dim"))
    return Padding(grid, (0, 0, 0, 2))


def _why(decision: Decision) -> str:
    because = f"{decision.by}: {decision.because}" if decision.because else decision.by
    lost = "".join(f"; overrules {o.by} ({o.value})" for o in decision.overruled)
    return because + lost


def _plans(ended: Iterable[Ended], *, diff: bool) -> Iterator[RenderableType]:
    """Yield how hosts stand to their steps, or came out; those with the same lines once."""
    groups: dict[object, list[Ended]] = {}
    for one in ended:
        groups.setdefault(_shape(one, diff=diff), []).append(one)
    for group in groups.values():
        head = Text(f" {fold(tuple(one.host for one in group))}", "bold")
        yield head.append(f"  shown for {group[0].host}", "dim") if group[1:] else head
        yield from _one(group[0], diff=diff)
        records = [one.record for one in group if one.record]
        if records:
            more = f"  and {len(records) - 1} more beside it" if records[1:] else ""
            yield Text(f"  receipt      {records[0]}{more}", "dim")


def _shape(ended: Ended, *, diff: bool) -> object:
    """Return what is shown of one host with its own name and address left out."""
    plan, receipt = ended.plan, ended.receipt
    if plan is None:
        return None
    own = [str(d.value) for d in plan.decisions if d.knob == "advertise_host"] + [ended.host]

    def common(text: str) -> str:
        for name in filter(None, own):
            text = text.replace(name, "@")
        return text

    if receipt is not None:
        return tuple((common(done.id), done.outcome) for done in receipt.steps)
    steps = tuple(
        (common(each.step.title), each.observation.state, common(difference(each)) if diff else "")
        for each in plan.steps
    )
    is_mended = bool(ended.rounds) or any(fix.is_taken for fix in ended.fixes)
    blocks = frozenset(finding.id for finding in plan.blocks)
    return (blocks, is_mended, steps) if is_mended or not blocks else blocks


def _one(ended: Ended, *, diff: bool) -> Iterator[RenderableType]:
    plan = ended.plan
    if plan is None:
        yield Text("  not planned: see the error below", "red")
    elif plan.blocks:
        names = ", ".join(sorted({finding.id for finding in plan.blocks}))
        done = "nothing else was changed" if ended.rounds else "nothing was changed"
        yield Text(f"  {done}: blocked by {names}", "bold red")
        if not ended.rounds and any(fix.is_taken for fix in ended.fixes):
            yield plan_view(plan, diff=diff)
    elif ended.receipt is None:
        yield plan_view(plan, diff=diff)
    else:
        yield receipt_view(ended.receipt)


def ended_document(ended: Ended) -> dict[str, Any]:
    """Return one host's outcome as plain data."""
    return {
        "schema": "bringup.provision/1",
        "host": ended.host,
        "exit": int(ended.code),
        "plan": plan_document(ended.plan) if ended.plan else None,
        "receipt": receipt_document(ended.receipt) if ended.receipt else None,
        "record": ended.record or None,
        **_fixes(ended),
        "error": ended.error.message if ended.error else None,
    }


def _fixes(ended: Ended) -> dict[str, Any]:
    """Return what fixing came to, nothing where it was not asked for."""
    if not ended.fixes and not ended.rounds:
        return {}
    rounds = [receipt_document(one.receipt) for one in ended.rounds if one.receipt]
    lifted = [
        {"finding": one.id, "words": lifted_words(one), "no_more": dict(one.decide)}
        for one in ended.lifted
    ]
    fixes = [fix_document(fix) for fix in ended.fixes]
    return {"fixes": fixes, "fix_receipts": rounds, "lifted": lifted}


def by_outcome(ended: Iterable[Ended], *, check: bool) -> Mapping[str, tuple[str, ...]]:
    """Return the hosts that came out the same way, by the words for it."""
    words: dict[str, tuple[str, ...]] = {}
    for one in ended:
        word = _word(one, check=check)
        words[word] = (*words.get(word, ()), one.host)
    return words


def summary_view(ended: Iterable[Ended], *, check: bool) -> RenderableType:
    """Return the line at the end: how many hosts came out how."""
    words = by_outcome(ended, check=check)
    text = "; ".join(f"{len(hosts)} {word} ({fold(hosts)})" for word, hosts in words.items())
    return Text(f"\n{text}", "bold")


def _word(one: Ended, *, check: bool) -> str:
    if one.error:
        return "failed"
    if one.plan is None or one.plan.blocks:
        return "blocked"
    if one.receipt or one.rounds:
        return "changed"
    return "would change" if check and one.plan.changes else "with nothing to change"
