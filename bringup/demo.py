"""The demo: the main job from bare practice hosts to a second run that changes nothing."""

from __future__ import annotations

from pathlib import Path

from .core.errors import Exit, gravest
from .core.event import Event
from .core.outcome import Ended
from .flow.open import choose, deployments_for, read_inventory, tools_for
from .flow.provision import provision
from .flow.types import Order
from .lab.fleet import up
from .options.hosts import HostSelection, Workspace
from .report.demo import Stage, closing_view, stage_view
from .report.provision import ended_document, run_view, summary_view
from .report.screen import Screen

PAIR = "b300-[04,07]"

STAGES = (
    Stage("1", "Plan", "what was found, what follows from it, what would change (--check)", True),
    Stage("2", "Apply", "the same plan, applied under a lock, each file looked at again", False),
    Stage("3", "Again", "the second run finds nothing to change", False),
)


def show_main_job(screen: Screen, folder: Path) -> Exit:
    """Bring the lab up with fresh hosts, then plan, apply and run again on the pair.

    Returns the gravest exit code of the two runs that act; the plan's "would change" is expected.
    """
    status = up(folder, fresh=True, on_line=lambda line: screen.tell(Event("lab", "up", line)))
    screen.tell(Event("lab", "up", "done", is_end=True))
    workspace = Workspace(inventory=str(status.inventory), state=str(folder / "state"))
    codes = [_stage(screen, workspace, stage) for stage in STAGES]
    screen.show(closing_view(status, folder))
    return gravest([code for code in codes if code is not Exit.WOULD_CHANGE])


def _stage(screen: Screen, workspace: Workspace, stage: Stage) -> Exit:
    screen.show(stage_view(stage))
    inventory = read_inventory(workspace.inventory)
    hosts = choose(inventory, HostSelection(host=(PAIR,)))
    served = deployments_for(inventory, hosts)
    order = Order(inventory, hosts, served, check=stage.check)
    with tools_for(inventory, workspace, screen.tell) as tools:
        ended = provision(tools, order)
    screen.show(run_view(ended, diff=stage.check, brief=not stage.check))
    for one in ended:
        _tell(screen, stage, one)
    screen.show(summary_view(ended, check=stage.check))
    return gravest([one.code for one in ended])


def _tell(screen: Screen, stage: Stage, one: Ended) -> None:
    screen.emit({"stage": stage.name.lower(), **ended_document(one)})
    if one.error:
        screen.fail(one.error)
