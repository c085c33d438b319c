"""Weights: bring a model folder to the hosts that lack it, and tell whether one is whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Blocked, Exit, gravest
from ..core.verb import Help, Verb
from ..options.hosts import BareWorkspace, Hosts
from ..options.weights import Copying, DeploymentWord, ModelCopy, Sums
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..core.event import Event, Listen
    from ..flow.weights import SyncPlan
    from ..flow.weights_run import Copied
    from ..weights.plan import HostPlan


def weights_sync(
    screen: Screen,
    *,
    what: ModelCopy,
    check: Annotated[bool, Help("show what would be copied; write nothing")] = False,
    how: Copying,
    workspace: BareWorkspace,
) -> Exit:
    """Copy a model folder to the hosts that lack it, or a part of it; what is there stays.

    Looks first, in one trip a host: index, sizes, headers, samples of every shard, room. Files come
    several at a time, from host to host; hosts hand on what they have. What broke off goes on where
    it ended, a wrong shard is named and it alone comes anew, and another model or revision is never
    mixed in. Exit codes: 0 done, 1 failed, 2 wrong input, 3 not reachable, 4 refused, 5 would copy.
    """
    from ..flow.bundle_open import opened
    from ..flow.weights import plan_sync
    from ..flow.weights_open import wish_of
    from ..flow.weights_run import copy

    with opened(workspace, _live(screen), needed=True) as (known, tools):
        plan = plan_sync(tools, wish_of(what, how, known, tools))
        _show(screen, plan)
        done = {} if check else copy(tools, plan)
    return _ended(screen, plan, done)


def weights_check(
    screen: Screen,
    folder: Annotated[tuple[str, ...], Help("HOSTS:PATH, or PATH here; repeatable")] = (),
    *,
    deployment: DeploymentWord = "",
    host: Hosts = (),
    hashes: Annotated[bool, Help("compare SHA-256 with those that a hub's cache names")] = False,
    sums: Sums = "",
    workspace: BareWorkspace,
) -> Exit:
    """Tell whether model folders are whole: index, sizes and headers; sums on request.

    Reads headers only, in one trip a host, unless sums are asked for. Exit codes: 0 all are whole,
    1 one is not, 3 one could not be looked at.
    """
    from ..flow.bundle_open import opened, spot
    from ..flow.weights_check import check
    from ..flow.weights_open import targets_of
    from ..report.weights import check_document, checks_view

    needed = not folder or any(spot(word).hosts for word in folder)
    with opened(workspace, screen.tell, needed=needed) as (known, tools):
        rows = check(
            tools, targets_of(folder, deployment, host, known, tools), hashes=hashes, sums=sums
        )
    seen = [row for row in rows if row.error is None]
    screen.show(*checks_view((row.place.name, row.folder, row.faults, row.note) for row in seen))
    for row in seen:
        screen.emit(check_document(row.place.host.name, row.folder, row.faults, row.note))
    screen.fail(*(row.error for row in rows if row.error))
    return gravest([row.code for row in rows])


def _live(screen: Screen) -> Listen:
    """Return what shows progress: a line a host on a terminal, lines as they come elsewhere."""
    from ..report.weights import board_view

    latest: dict[str, Event] = {}

    def listen(event: Event) -> None:
        if event.stage in ("copy", "verify"):
            latest[event.host] = event
            screen.watch(board_view(latest))
        screen.tell(event)

    return listen


def _show(screen: Screen, plan: SyncPlan) -> None:
    from ..report.weights import plan_document, plan_view

    rows = tuple(plan.plans.values())
    left_out = tuple(file.name for file in plan.left_out)
    screen.show(
        plan_view(
            plan.source.name, plan.folder, rows, way=plan.way, seconds=plan.seconds,
            rate_mb_s=plan.rate_mb_s,             left_out=left_out, notes=plan.notes,
        )
    )  # fmt: skip
    for row in rows:
        screen.emit(plan_document(row, source=plan.source.name, seconds=plan.seconds))


def _ended(screen: Screen, plan: SyncPlan, done: Mapping[str, Copied]) -> Exit:
    """Tell how each host came out, and return the exit code of all."""
    from ..report.weights import Line, copied_document, copied_view

    lines = [
        Line(one.host, one.path, one.files, one.sent, one.seconds, one.by)
        for one in done.values()
        if one.error is None
    ]
    if lines:
        screen.show(copied_view(lines))
    for line in lines:
        screen.emit(copied_document(line))
    refused = {n: _refused(n, row) for n, row in plan.plans.items() if row.trouble}
    failed = {one.host: one.error for one in done.values() if one.error is not None}
    errors = {**plan.errors, **refused, **failed}
    screen.fail(*errors.values())
    codes = [error.code for error in errors.values()]
    left = [n for n, row in plan.plans.items() if row.is_change and n not in {*done, *errors}]
    return gravest([*codes, *([Exit.WOULD_CHANGE] if left else [])])


def _refused(host: str, row: HostPlan) -> Blocked:
    from ..weights.folder import Seat

    if "on a share" in row.trouble:
        remedy = f"leave {host} out: what the other host writes is there for it as well"
    elif row.difference.refusal and row.folder.seat is Seat.FOLDER:
        remedy = (
            f"move it away (mv {row.path} {row.path}.old) or name another folder; --replace"
            " writes over what differs"
        )
    else:
        remedy = f"see df -h and ls -ld of {row.path} on {host}"
    return Blocked(f"cannot copy to {row.path}: {row.trouble}", host=host, remedy=remedy)


VERBS = (
    Verb("weights.sync", weights_sync),
    Verb("weights.check", weights_check, reads_only=True),
)
