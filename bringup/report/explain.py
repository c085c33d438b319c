"""Explanations as people read them: from the flag back to the fact."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..engines.explain import Explanation


def explanation_view(explanation: Explanation) -> RenderableType:
    """Return a title, its labelled lines, its source, and what it rests on, indented."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in explanation.lines:
        grid.add_row(label, Text(text))
    if explanation.source:
        grid.add_row("source", Text(explanation.source))
    below = [Padding(explanation_view(one), (0, 0, 0, 2)) for one in explanation.below]
    return Group(Text(explanation.title, "bold"), Padding(grid, (0, 0, 0, 2)), *below)
