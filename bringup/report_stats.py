"""What a run cost: connections, commands, round trips and bytes, host by host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from .core.document import plain
from .core.remote import Traffic


def stats_view(traffic: Mapping[str, Traffic]) -> RenderableType:
    """Return the cost of every host as a table."""
    heads = ("host", "connections", "commands", "round trips", "sent", "received")
    table = Table(*heads, box=None, padding=(0, 2))
    for column in table.columns[1:]:
        column.justify = "right"
    for host, cost in sorted(traffic.items()):
        sizes = (f"{cost.sent:,} B", f"{cost.received:,} B")
        counts = (cost.connections, cost.commands, cost.round_trips)
        table.add_row(host, *map(str, counts), *sizes)
    return table


def stats_document(traffic: Mapping[str, Traffic]) -> dict[str, Any]:
    """Return the cost of every host as plain data."""
    return {"schema": "bringup.stats/1", "hosts": plain(dict(sorted(traffic.items())))}
