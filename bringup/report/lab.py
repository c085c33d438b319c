"""The practice fleet as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.words import command, quote
from ..lab.fleet import LabStatus


def lab_view(status: LabStatus) -> RenderableType:
    """Return the hosts with their hardware, and the commands to try on them."""
    if not status.is_up:
        return Text("the lab is down; ./run lab.up starts it")
    table = Table.grid(padding=(0, 2))
    for host in status.hosts:
        table.add_row(Text(host.name, "bold"), f"{host.address}:{host.port}", host.about)
    folder = _from_here(status.inventory)
    where = command(["--inventory", folder])
    return Group(
        table,
        Text("\ntry", "bold"),
        *(f"  ./run {line} {where}" for line in _tries([host.name for host in status.hosts])),
        f"  export BRINGUP_INVENTORY={quote(folder)}   leaves --inventory out",
    )


def _tries(names: list[str]) -> Iterator[str]:
    """Yield commands for hosts that are up: one to look at, and the pair or one to bring up."""
    if names:
        pair = {"b300-04", "b300-07"} <= set(names)
        yield f"probe --host {quote(names[0])}"
        yield f"provision --host {quote('b300-[04,07]' if pair else names[0])} --check"


def _from_here(path: Path) -> str:
    """Return a path as short as it can be written in the working directory."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
