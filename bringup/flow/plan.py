"""Saved plans: kept in a file, and compared with a fresh one before anything is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..core.document import digest
from ..core.errors import StalePlan, UsageError
from ..core.outcome import Ended
from ..core.plan import SCHEMA, Plan, document
from ..edge.store import load_document, save_document

_ANEW = "make the plan anew with --check --save-plan, and read it again"


def keep(path: str, ended: tuple[Ended, ...]) -> None:
    """Save the plan of a run over one host."""
    if not path:
        return
    plans = [one.plan for one in ended if one.plan]
    if len(plans) != 1:
        raise UsageError(f"cannot save {len(plans)} plans in one file", remedy="name one host")
    kept = {**document(plans[0]), "digest": plans[0].digest}
    save_document(Path(path), {**kept, "sum": digest(kept)})


def load(path: str) -> dict[str, Any]:
    """Return a saved plan, {} for no path; raises UsageError where its text was edited."""
    if not path:
        return {}
    saved = load_document(Path(path), SCHEMA)
    if digest({key: value for key, value in saved.items() if key != "sum"}) != saved.get("sum"):
        raise UsageError(f"cannot apply {path}: its text was edited since", remedy=_ANEW)
    return saved


def meant(saved: dict[str, Any], path: str, hosts: Iterable[str]) -> None:
    """Raise UsageError where a saved plan is for another host than the chosen ones."""
    chosen = tuple(hosts)
    if saved and chosen != (saved.get("host"),):
        raise UsageError(
            f"cannot apply {path} to {', '.join(chosen)}: the plan is for {saved.get('host')}",
            remedy="leave --host out: the plan says which host is meant",
        )


def compare(saved: dict[str, Any], path: str) -> Callable[[Plan], None]:
    """Return the gate that a fresh plan has to pass; raises StalePlan where it is another one."""
    if not saved:
        return lambda _: None

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
            remedy=_ANEW,
        )

    return gate
