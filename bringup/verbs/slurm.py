"""Slurm beside us: take hosts from it for a worker, and give them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError, gravest
from ..core.verb import Help, Verb
from ..options.hosts import HostSelection, Workspace
from ..options.slurm import Taking
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..flow.slurm import Held

Check = Annotated[bool, Help("show what would be done; change nothing")]


def slurm_take(
    screen: Screen,
    *,
    hosts: HostSelection,
    taking: Taking,
    check: Check = False,
    workspace: Workspace,
) -> Exit:
    """Take hosts from Slurm: reserve or drain them, then wait until their jobs have ended.

    No job is cancelled. When the wait is over or you press Ctrl-C, what this run took is given
    back. Exit codes: 0 no job is left, 4 jobs still run or Slurm does not answer, 5 with --check.
    """
    from ..flow.open import choose, read_inventory, tools_for
    from ..flow.slurm import take

    if taking.days < 1 or taking.wait_s < 0:
        raise UsageError("cannot take hosts for less than a day, or wait less than 0 s")
    known = read_inventory(workspace.inventory)
    with tools_for(known, workspace, screen.tell) as tools:
        rows = take(tools, choose(known, hosts), taking, check=check)
    return _told(screen, rows)


def slurm_give(
    screen: Screen,
    *,
    hosts: HostSelection,
    check: Check = False,
    workspace: Workspace,
) -> Exit:
    """Give hosts back to Slurm: end our drain, then our reservation; those of others stay."""
    from ..flow.open import choose, read_inventory, tools_for
    from ..flow.slurm import give

    known = read_inventory(workspace.inventory)
    with tools_for(known, workspace, screen.tell) as tools:
        rows = give(tools, choose(known, hosts), check=check)
    return _told(screen, rows)


def _told(screen: Screen, rows: tuple[Held, ...]) -> Exit:
    from ..report.alike import by_host
    from ..report.slurm import held_document, held_view

    held = [row for row in rows if row.error is None]
    told = {
        row.host: (
            held_view(
                done=row.changes, jobs=row.jobs, note=row.note, waited_s=row.waited_s,
                is_check=row.is_check,
            ),
        )
        for row in held
    }  # fmt: skip
    screen.show(*by_host(told))
    for row in held:
        screen.emit(
            held_document(
                row.host, node=row.node, done=row.changes, jobs=row.jobs, note=row.note,
                waited_s=row.waited_s, is_check=row.is_check,
            )
        )  # fmt: skip
    screen.fail(*(row.error for row in rows if row.error))
    return gravest([row.code for row in rows])


VERBS = (Verb("slurm.take", slurm_take), Verb("slurm.give", slurm_give))
