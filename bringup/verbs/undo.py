"""Take back what was changed."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb
from ..options.hosts import HostSelection, Workspace
from ..report.screen import Screen


def undo(
    screen: Screen,
    *,
    hosts: HostSelection,
    to: Annotated[str, Help("take back all receipts down to and with this one")] = "",
    check: Annotated[bool, Help("show what would change; write nothing")] = False,
    workspace: Workspace,
) -> Exit:
    """Take back what bringup changed on hosts, from its receipts.

    Without --to, the newest receipt of a change that is not taken back yet. Files get their old
    content, packages their old state; what has no way back is named. Refused, before anything is
    changed, where somebody changed one of these things since.
    """
    from ..flow.open import choose, read_inventory, tools_for
    from ..flow.undo import undo as run
    from ..report.undo import undo_view, undone_document

    known = read_inventory(workspace.inventory)
    chosen = choose(known, hosts)
    with tools_for(known, workspace, screen.tell) as tools:
        undone = run(tools, chosen, to=to, check=check)
    screen.show(undo_view(undone))
    for one in undone:
        screen.emit(undone_document(one))
    screen.fail(*(one.ended.error for one in undone if one.ended.error))
    return gravest([one.ended.code for one in undone])


VERBS = (Verb("undo", undo),)
