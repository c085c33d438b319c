"""Names and values in two columns, as views put them."""

from __future__ import annotations

from rich.table import Table


def pairs(*, names: int | None = None, gap: int = 2) -> Table:
    """Return an empty grid for a name and a value a row; `names` is the first column's width."""
    grid = Table.grid(padding=(0, gap))
    grid.add_column(width=names, style="dim")
    grid.add_column(overflow="fold")
    return grid
