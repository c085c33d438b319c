"""Hosts of which the same is told, once: a hundred fit a screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ..edge.names import fold

_OWN = re.compile(r"\b\d+(?:\.\d+)? s\b|\b\d{8}T\d{6}Z(?:-\d+)?")
"""What each host has of its own whatever was done: how long it took, and names of receipts."""


def by_host(told: Mapping[str, tuple[RenderableType, ...]]) -> Iterator[RenderableType]:
    """Yield the rows of each host under its name; those that differ in name and time only, once."""
    groups: dict[str, list[str]] = {}
    for host, rows in told.items():
        groups.setdefault(_common(host, rows), []).append(host)
    for hosts in groups.values():
        head = Text(f" {fold(tuple(hosts))}", "bold")
        yield head.append(f"  shown for {hosts[0]}", "dim") if hosts[1:] else head
        yield from told[hosts[0]]


def _common(host: str, rows: tuple[RenderableType, ...]) -> str:
    out = StringIO()
    Console(file=out, width=1000, color_system=None, highlight=False).print(Group(*rows))
    return re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", "@", _OWN.sub("", out.getvalue()))
