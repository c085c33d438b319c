"""A receipt: what a plan's application did, step by step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from .document import plain
from .plan import Plan, Planned

SCHEMA = "bringup.receipt/1"


class Outcome(Enum):
    """What became of a step."""

    SAME = "same"
    CHANGED = "changed"
    FAILED = "failed"
    BEGUN = "begun"  # the run was cut off while it was at this step
    NOT_REACHED = "not reached"


@dataclass(frozen=True, slots=True)
class Done:
    """One step of a receipt. `before` keeps what stood there, for undo."""

    id: str
    outcome: Outcome
    seconds: float = 0.0
    found: str = ""
    wanted: str = ""
    before: str | None = None
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Who applied which plan, when (ISO 8601, UTC), and how each step ended."""

    host: str
    plan: str
    operator: str
    began: str
    ended: str
    steps: tuple[Done, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many steps ended in each way; ways that none ended in are left out."""
        ends = [done.outcome for done in self.steps]
        return {end.value: ends.count(end) for end in Outcome if end in ends}


def blank(plan: Plan, *, operator: str, began: str) -> Receipt:
    """Return the receipt before the first step: what is there already is `same`."""
    steps = tuple(
        Done(
            planned.step.id,
            Outcome.NOT_REACHED if planned.is_change else Outcome.SAME,
            found=planned.observation.found,
            wanted=planned.step.wanted,
            before=_kept(planned),
        )
        for planned in plan.steps
    )
    return Receipt(plan.host, plan.digest, operator, began, "", steps)


def _kept(planned: Planned) -> str | None:
    keeps = planned.step.keeps or planned.step.content is not None
    return planned.observation.detail if keeps else None


def mark(
    receipt: Receipt, ids: Collection[str], outcome: Outcome, *, seconds: float, tail: str = ""
) -> Receipt:
    """Return the receipt with the end of some steps filled in."""
    steps = tuple(
        replace(done, outcome=outcome, seconds=round(seconds, 2), tail=tail)
        if done.id in ids
        else done
        for done in receipt.steps
    )
    return replace(receipt, steps=steps)


def document(receipt: Receipt) -> dict[str, Any]:
    """Return the receipt as plain data with its schema."""
    return {"schema": SCHEMA, **plain(receipt)}


def log_line(receipt: Receipt) -> str:
    """Return the one line that is appended to the log on the host."""
    counts = " ".join(f"{count} {name}" for name, count in receipt.counts.items())
    return f"{receipt.ended} bringup by {receipt.operator}: {counts}; plan {receipt.plan[:19]}\n"
