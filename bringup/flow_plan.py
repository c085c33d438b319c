"""Saved plans: kept in a file, and compared with a fresh one before anything is applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .core.errors import StalePlan, UsageError
from .core.outcome import Ended
from .core.plan import SCHEMA, Plan, document
from .edge.store import load_document, save_document


def keep(path: str, ended: tuple[Ended, ...]) -> None:
    """Save the plan of a run over one host."""
    if not path:
        return
    plans = [one.plan for one in ended if one.plan]
    if len(plans) != 1:
        raise UsageError(f"cannot save {len(plans)} plans in one file", remedy="name one host")
    save_document(Path(path), {**document(plans[0]), "digest": plans[0].digest})


def compare(path: str) -> Callable[[Plan], None]:
    """Return the gate that a fresh plan has to pass; raises StalePlan where it is another one."""
    if not path:
        return lambda _: None
    saved = load_document(Path(path), SCHEMA)

    def gate(plan: Plan) -> None:
        if plan.digest == saved.get("digest"):
            return
        moved = [
            name
            for name, value in document(plan).items()
            if value != saved.get(name) and name not in ("digest", "tool")
        ]
        raise StalePlan(
            f"cannot apply {path}: plan is stale: {', '.join(moved) or 'it'} differ from now",
            host=plan.host,
            remedy="make the plan anew with --check --save-plan, and read it again",
        )

    return gate
