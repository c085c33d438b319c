"""Hosts taken from Slurm and given back, as people read it, and as machines do."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..probes.slurm_queue import QueuedJob


def held_view(
    *, done: tuple[str, ...], jobs: tuple[QueuedJob, ...], note: str, waited_s: float,
    is_check: bool,
) -> RenderableType:  # fmt: skip
    """Return what was done with one host, and which jobs it still runs."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    word = "would" if is_check else "done"
    style = "yellow" if is_check else "green"
    for title in done:
        grid.add_row(Text(word, style), title)
    if not done:
        grid.add_row(Text("same", "dim"), note or "nothing to do")
    elif note:
        grid.add_row(Text("note", "dim"), note)
    for job in jobs:
        grid.add_row(Text("runs", "yellow"), str(job))
    if waited_s >= 1:
        until = "" if jobs else ", until no job was left"
        grid.add_row(Text("waited", "dim"), f"{waited_s:.0f} s{until}")
    return Padding(grid, (0, 0, 0, 2))


def held_document(
    host: str, *, node: str, done: tuple[str, ...], jobs: tuple[QueuedJob, ...], note: str,
    waited_s: float, is_check: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return one host as plain data."""
    return {
        "schema": "bringup.slurm/1",
        "host": host,
        "node": node,
        "check": is_check,
        "changes": done,
        "jobs": jobs,
        "note": note,
        "waited_s": round(waited_s, 1),
    }
