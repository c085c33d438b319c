"""Errors as people read them: what cannot be done, where, what was said, what to do."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ..core.errors import ToolError, alike
from ..edge.names import fold


def errors_view(errors: Iterable[ToolError]) -> RenderableType:
    """Return errors, those of one kind once: the first in full, then the other hosts."""
    rows: list[RenderableType] = []
    for group in alike(errors):
        rows.append(error_view(group[0]))
        if hosts := [error.host for error in group[1:] if error.host]:
            rows.append(_row("also", fold(hosts), style="bold"))
    return Group(*rows)


def error_view(error: ToolError) -> RenderableType:
    """Return host and step, the message, the command, its last ten lines, and what to do."""
    head = Text()
    for part in (error.host, error.step):
        head.append(f"{part}  " if part else "", style="bold")
    head.append(error.message, style="red")
    rows: list[RenderableType] = [head]
    ran, code = getattr(error, "ran", ""), getattr(error, "exit_code", None)
    if ran:
        rows.append(_row("ran", f"{ran}  (exit {code})"))
    if error.said.strip():
        rows.append(_row("said", "\n".join(error.said.strip().splitlines()[-10:])))
    if error.remedy:
        rows.append(_row("do", error.remedy, style="green"))
    return Group(*rows)


def _row(label: str, text: str, *, style: str = "") -> RenderableType:
    body = Text(f"{label:<7} ", style="dim")
    indent = "\n" + " " * 8
    body.append(text.replace("\n", indent), style=style)
    return Padding(body, (0, 0, 0, 2))
