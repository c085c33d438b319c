"""Undo: take back what receipts say was changed on a host, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import StalePlan, ToolError, UsageError
from ..core.host import Host
from ..core.outcome import Ended
from ..core.plan import Plan, plan_steps
from ..core.receipt import SCHEMA, Done, Outcome
from ..core.remote import Looking
from ..core.steps import KEPT, Observation
from ..core.words import command
from ..edge.pool import each
from ..edge.store import Store, load_document
from ..steps.back import Back, back, in_order
from .apply import apply, observe
from .types import Tools

_MAY_HAVE_CHANGED = (Outcome.CHANGED, Outcome.FAILED, Outcome.BEGUN)
"""A step that failed, or during which the run was cut off, may have changed the host before."""


@dataclass(frozen=True, slots=True)
class Undone:
    """How undoing came out on one host; `left` says what has no way back, and why."""

    ended: Ended
    left: tuple[Back, ...] = ()
    receipts: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()  # newer receipts that are taken back already


def undo(tools: Tools, hosts: tuple[Host, ...], *, to: str, check: bool) -> tuple[Undone, ...]:
    """Take back the newest receipt of each host, or all down to and with the one named `to`.

    A receipt of which all is back counts as taken back: then it is the next older one's turn.
    """

    def work(host: Host) -> Undone:
        return _one(tools, host, to=to, check=check)

    found: dict[str, Undone] = {}
    for outcome in each(hosts, work, limit=tools.limit):
        name, error = outcome.item.name, outcome.error
        if isinstance(error, ToolError):
            found[name] = Undone(Ended(name, error=error.at(host=name)))
        elif error is not None:
            raise error
        elif outcome.value is not None:
            found[name] = outcome.value
    return tuple(found[host.name] for host in hosts)


def _one(tools: Tools, host: Host, *, to: str, check: bool) -> Undone:
    told = told_of(tools.store, host.name)
    gone = () if to else _taken_back(tools, host, told)
    left_over = told[: len(told) - len(gone)]
    paths = chosen(left_over, to, host.name) if left_over else tuple(reversed(told))
    every = tuple(done for path in paths for done in reversed(_changed(path)))
    ways = in_order(_joined(back(done) for done in every))
    unsure = {done.id for done in every} - {d.id for d in every if d.outcome is Outcome.CHANGED}
    steps = tuple(way.step for way in ways if way.step is not None)
    seen = observe(tools, Looking(tools.fleet.remote(host.name)), host, steps)
    ways = tuple(_settled(way, seen) if way.id in unsure else way for way in ways)
    steps = tuple(way.step for way in ways if way.step is not None)
    refuse_changed(ways, seen, host.name)
    plan = Plan(
        host.name, tools.version, "", "", (), (), plan_steps(steps, seen)
    )  # fmt: skip
    left = tuple(staying(ways, seen))
    names = tuple(path.stem for path in paths)
    if check or not plan.changes:
        return Undone(Ended(host.name, plan), left, names, gone)
    receipt, record, error = apply(tools, host, plan)
    return Undone(Ended(host.name, plan, receipt, record, error), left, names, gone)


def told_of(store: Store, host: str) -> tuple[Path, ...]:
    """Return the receipts of changes, oldest first; raises UsageError where there is none."""
    told = tuple(path for path in store.receipts(host) if _changed(path))
    if told:
        return told
    folder = store.folder / "receipts" / host
    raise UsageError(
        f"cannot undo anything on {host}: no receipt of a change in {folder}",
        host=host,
        remedy="--state FOLDER names the folder that the change was made with",
    )


_LOOK_BACK = 50
"""How many receipts are looked through for one that is not taken back yet."""


def _taken_back(tools: Tools, host: Host, told: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the newest receipts of which all is as it was before them, newest first.

    One alone may seem changed since where an older one of the same file is back too, so that they
    are also looked at together.
    """
    newest = tuple(reversed(told[-_LOOK_BACK:]))
    dones = [tuple(reversed(_changed(path))) for path in newest]
    every = in_order(_joined(back(done) for of_one in dones for done in of_one))
    steps = tuple(way.step for way in every if way.step is not None)
    seen = observe(tools, Looking(tools.fleet.remote(host.name)), host, steps)
    at = 0
    while at < len(newest):
        ends = (
            end for end in range(at + 1, len(newest) + 1)
            if _is_back(_joined(back(d) for one in dones[at:end] for d in one), seen)
        )  # fmt: skip
        end = next(ends, None)
        if end is None:
            break
        at = end
    return tuple(path.stem for path in newest[:at])


def _is_back(ways: Iterable[Back], seen: dict[str, Observation]) -> bool:
    """Tell whether all that has a way back is as it was; False where nothing has one."""
    steps = [way.step for way in ways if way.step is not None]
    return bool(steps) and all(
        step.id in seen and seen[step.id].found == step.wanted for step in steps
    )


def chosen(told: tuple[Path, ...], to: str, host: str) -> tuple[Path, ...]:
    """Return the receipts to take back, newest first; raises UsageError for an unknown one."""
    name = Path(to).stem if to else told[-1].stem
    if name not in [path.stem for path in told]:
        raise UsageError(
            f"cannot undo to {to!r}: no receipt of a change on {host}",
            host=host,
            remedy=f"receipts: {', '.join(path.stem for path in told[-5:])}",
        )
    first = [path.stem for path in told].index(name)
    return tuple(reversed(told[first:]))


def _changed(path: Path) -> tuple[Done, ...]:
    """Return the steps of a receipt that changed something, or may have; undoing counts not."""
    document = load_document(path, SCHEMA)
    steps = (_done(step) for step in document.get("steps", []))
    return tuple(
        done for done in steps
        if done.outcome in _MAY_HAVE_CHANGED and not done.id.startswith("back:")
    )  # fmt: skip


def _done(step: dict[str, Any]) -> Done:
    before = step.get("before")
    return Done(
        str(step.get("id", "")), Outcome(step.get("outcome")), found=str(step.get("found", "")),
        wanted=str(step.get("wanted", "")), before=before if isinstance(before, str) else None,
    )  # fmt: skip


def _settled(way: Back, seen: dict[str, Observation]) -> Back:
    """Return a way that can be gone, or why not: where it stopped midway, nobody knows."""
    if way.step is None:
        return way
    found = seen[way.step.id].found
    if found in (way.left, way.step.wanted) or found.startswith(KEPT):
        return way
    return Back(way.id, why_not=f"its step did not end, and it is now: {found or 'not told'}")


def _joined(ways: Iterable[Back]) -> Iterator[Back]:
    """Yield each thing once: it goes from the newest state to the oldest one."""
    newest: dict[str, Back] = {}
    oldest: dict[str, Back] = {}
    for way in ways:
        newest.setdefault(way.id, way)
        oldest[way.id] = way
    for id_, way in newest.items():
        yield Back(id_, oldest[id_].step, way.left, oldest[id_].why_not)


def staying(ways: Iterable[Back], seen: dict[str, Observation]) -> Iterator[Back]:
    """Yield what has no way back, and what others need as it is, with the reason."""
    for way in ways:
        if way.step is None:
            yield way
        elif (found := seen[way.step.id].found).startswith(KEPT):
            yield Back(way.id, why_not=found.removeprefix(KEPT))


def refuse_changed(ways: Iterable[Back], seen: dict[str, Observation], host: str) -> None:
    """Raise StalePlan where something is neither as we left it nor as it was before."""
    moved = {
        way.id: f"{way.id}: left as {way.left}, now {found or seen[way.step.id].why}"
        for way in ways
        if way.step is not None
        and (found := seen[way.step.id].found) not in (way.left, way.step.wanted)
        and not found.startswith(KEPT)
    }
    if moved:
        files = [id_.removeprefix("file:") for id_ in moved if id_.startswith("file:")]
        look = command(["ssh", host, command(["cat", *files])]) if files else ""
        raise StalePlan(
            f"cannot undo: somebody changed {len(moved)} of it since",
            said="\n".join(moved.values()),
            remedy=f"look at each ({look or f'bringup provision --host {host} --check'}); nothing "
            "was taken back",
        )
