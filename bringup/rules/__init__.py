"""Checks and rules: tables of rows over facts. No row acts, none asks a host.

`CHECKS` is every check of the package: the `ROWS` of each `checks_*` module, in name order.
`OPT_IN` holds those that load the hardware and run only when asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..core.rules import Row, World

CHECKS: tuple[Row[World], ...]
OPT_IN: tuple[Row[World], ...]


@cache
def collect(table: str = "ROWS") -> tuple[Row[World], ...]:
    """Return that table of every `checks_*` module, imported on first use."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("checks_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(row for module in modules for row in getattr(module, table, ()))


def __getattr__(name: str) -> tuple[Row[World], ...]:
    if name == "CHECKS":
        return collect()
    if name == "OPT_IN":
        return collect("OPT_IN")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
