"""Slurm beside us: take hosts from it for a worker, and give them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError, gravest
from ..core.verb import Help, Verb
from ..report.screen import Screen
from .common import AcceptNew, Exclude, Folder, Groups, Hosts, KnownHosts, Limit, State

if TYPE_CHECKING:
    from ..flow.slurm import Held

Check = Annotated[bool, Help("show what would be done; change nothing")]


def slurm_take(
    screen: Screen,
    *,
    host: Hosts = (),
    group: Groups = (),
    limit: Limit = "",
    exclude: Exclude = (),
    drain: Annotated[bool, Help("drain the node, instead of reserving it")] = False,
    days: Annotated[int, Help("days until the reservation ends by itself")] = 30,
    reason: Annotated[str, Help("what people read as the reason, as a ticket")] = "",
    user: Annotated[str, Help("user whom the reservation is for")] = "root",
    wait_s: Annotated[float, Help("longest wait for jobs that run, seconds")] = 3600.0,
    keep: Annotated[
        bool, Help("hold the host though jobs still run when the wait is over")
    ] = False,
    check: Check = False,
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Take hosts from Slurm: reserve or drain them, then wait until their jobs have ended.

    No job is cancelled. When the wait is over or you press Ctrl-C, what this run took is given
    back. Exit codes: 0 no job is left, 4 jobs still run or Slurm does not answer, 5 with --check.
    """
    from ..flow.open import Choice, choose, read_inventory, tools_for
    from ..flow.slurm import Taking, take

    if days < 1 or wait_s < 0:
        raise UsageError("cannot take hosts for less than a day, or wait less than 0 s")
    choice = Choice(inventory, host, group, limit, exclude, known_hosts, accept_new, state)
    known = read_inventory(inventory)
    wish = Taking(drain, days, reason, user, wait_s, keep, check)
    with tools_for(known, choice, screen.tell) as tools:
        rows = take(tools, choose(known, choice), wish)
    return _told(screen, rows)


def slurm_give(
    screen: Screen,
    *,
    host: Hosts = (),
    group: Groups = (),
    limit: Limit = "",
    exclude: Exclude = (),
    check: Check = False,
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Give hosts back to Slurm: end our drain, then our reservation; those of others stay."""
    from ..flow.open import Choice, choose, read_inventory, tools_for
    from ..flow.slurm import give

    choice = Choice(inventory, host, group, limit, exclude, known_hosts, accept_new, state)
    known = read_inventory(inventory)
    with tools_for(known, choice, screen.tell) as tools:
        rows = give(tools, choose(known, choice), check=check)
    return _told(screen, rows)


def _told(screen: Screen, rows: tuple[Held, ...]) -> Exit:
    from ..report.slurm import held_document, held_view

    for row in rows:
        if row.error is not None:
            screen.fail(row.error)
            continue
        screen.show(
            held_view(
                row.host, done=row.changes, jobs=row.jobs, note=row.note, waited_s=row.waited_s,
                is_check=row.is_check,
            )
        )  # fmt: skip
        screen.emit(
            held_document(
                row.host, node=row.node, done=row.changes, jobs=row.jobs, note=row.note,
                waited_s=row.waited_s, is_check=row.is_check,
            )
        )  # fmt: skip
    return gravest([row.code for row in rows])


VERBS = (Verb("slurm.take", slurm_take), Verb("slurm.give", slurm_give))
