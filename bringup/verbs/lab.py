"""The practice lab, and the main job shown on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..core.errors import Exit
from ..core.event import Event
from ..core.verb import Help, Verb
from ..report.screen import Screen

Folder = Annotated[str, Help("folder that the lab lives in")]


def lab_up(
    screen: Screen,
    *,
    host: Annotated[tuple[str, ...], Help("described host or pattern; repeatable")] = (),
    fresh: Annotated[bool, Help("make the hosts' folders anew")] = False,
    folder: Folder = ".lab",
) -> Exit:
    """Start the practice fleet: bare hosts of described hardware on loopback."""
    from ..lab.fleet import up
    from ..report.lab import lab_view

    status = up(Path(folder), host, fresh=fresh, on_line=lambda line: _tell(screen, line))
    screen.tell(Event("lab", "up", "done", is_end=True))
    screen.show(lab_view(status))
    screen.emit({"schema": "bringup.lab/1", "lab": status})
    return Exit.DONE


def _tell(screen: Screen, line: str) -> None:
    screen.tell(Event("lab", "up", line))


def lab_down(
    screen: Screen,
    *,
    remove: Annotated[bool, Help("remove the lab's folder as well")] = False,
    folder: Folder = ".lab",
) -> Exit:
    """Stop the practice fleet."""
    from ..lab.fleet import down

    down(Path(folder), remove=remove)
    screen.show(f"the lab in {folder} is down")
    return Exit.DONE


def lab_status(screen: Screen, *, folder: Folder = ".lab") -> Exit:
    """Tell which hosts of the practice fleet run, and how to reach them."""
    from ..lab.fleet import status as ask
    from ..report.lab import lab_view

    status = ask(Path(folder))
    screen.show(lab_view(status))
    screen.emit({"schema": "bringup.lab/1", "lab": status})
    return Exit.DONE


def demo(screen: Screen, *, folder: Folder = ".lab") -> Exit:
    """Show the main job: two bare practice hosts become a checked prefill/decode pair.

    Starts the practice fleet with fresh hosts, plans, applies, and runs again to show that nothing
    is left to change. Needs no root, Docker, GPU or sshd.
    """
    from ..demo import show_main_job

    return show_main_job(screen, Path(folder))


VERBS = (
    Verb("demo", demo),
    Verb("lab.up", lab_up),
    Verb("lab.down", lab_down),
    Verb("lab.status", lab_status, reads_only=True),
)
