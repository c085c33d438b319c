"""What changed on hosts since they were last looked at, for people and as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.changes import Change, alike
from ..core.document import plain
from ..core.masking import without_secrets
from ..edge.names import fold

SCHEMA = "bringup.changes/1"


def changes_view(changes: Mapping[str, Iterable[Change]], *, since: str = "") -> RenderableType:
    """Return the changes of each host; hosts with the same ones are told together."""
    told: dict[tuple[str, ...], list[str]] = {}
    for host, own in changes.items():
        told.setdefault(tuple(_lines(own)), []).append(host)
    head = Text(f"changed since {since}" if since else "changed", "bold underline")
    return Group(head, *(_host(fold(hosts), lines) for lines, hosts in told.items()))


def _lines(changes: Iterable[Change]) -> list[str]:
    return [_line(group) for group in alike(changes)]


def _line(group: tuple[Change, ...]) -> str:
    more = f" (and {len(group) - 1} more alike)" if len(group) > 1 else ""
    return without_secrets(str(group[0])) + more


def _host(hosts: str, lines: tuple[str, ...]) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    for line in lines or ("nothing",):
        grid.add_row(Text("~" if lines else "=", "yellow" if lines else "dim"), Text(line))
    return Group(Text(f"\n{hosts}", "bold"), grid)


def document(changes: Mapping[str, Iterable[Change]], *, since: str = "") -> dict[str, Any]:
    """Return the changes as plain data with their schema."""
    return {
        "schema": SCHEMA,
        "since": since,
        "hosts": {
            host: [{**plain(change), "words": without_secrets(str(change))} for change in own]
            for host, own in changes.items()
        },
    }
