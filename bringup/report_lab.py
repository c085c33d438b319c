"""The practice fleet as people read it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .core.words import command
from .lab.fleet import LabStatus


def lab_view(status: LabStatus) -> RenderableType:
    """Return the hosts with their hardware, and the commands to try on them."""
    if not status.is_up:
        return Text("the lab is down; invoke lab.up starts it")
    table = Table.grid(padding=(0, 2))
    for host in status.hosts:
        table.add_row(Text(host.name, "bold"), f"{host.address}:{host.port}", host.about)
    where = command(["--inventory", str(status.inventory)])
    return Group(
        table,
        Text("\ntry", "bold"),
        f"  ./run probe --host b200-01 {where}",
        f"  ./run provision --host 'b300-[04,07]' {where} --check",
        f"  export BRINGUP_INVENTORY={status.inventory}   leaves --inventory out",
    )
