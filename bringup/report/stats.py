"""What a run cost: connections, commands, round trips and bytes, host by host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from ..core.document import plain
from ..core.remote import Traffic
from ..edge.names import fold


def stats_view(traffic: Mapping[str, Traffic]) -> RenderableType:
    """Return the cost of hosts as a table: those that cost the same in a row, bytes as a range."""
    heads = ("host", "connections", "commands", "round trips", "sent", "received")
    table = Table(*heads, box=None, padding=(0, 2))
    for column in table.columns[1:]:
        column.justify = "right"
    groups: dict[tuple[int, int, int], list[str]] = {}
    for host, cost in traffic.items():
        counts = (cost.connections, cost.commands, cost.round_trips)
        groups.setdefault(counts, []).append(host)
    for counts, hosts in sorted(groups.items()):
        sizes = (_range(getattr(traffic[h], way) for h in hosts) for way in ("sent", "received"))
        table.add_row(fold(hosts), *map(str, counts), *sizes)
    return table


def _range(values: Iterable[int]) -> str:
    every = sorted(values)
    least, most = f"{every[0]:,}", f"{every[-1]:,}"
    return f"{least} B" if least == most else f"{least}–{most} B"


def stats_document(traffic: Mapping[str, Traffic]) -> dict[str, Any]:
    """Return the cost of every host as plain data."""
    return {"schema": "bringup.stats/1", "hosts": plain(dict(sorted(traffic.items())))}
