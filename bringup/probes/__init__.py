"""Probes: one file a question. Each file holds its type, its sh text, and its pure parser.

`ALL` is every probe of the package: each module's `PROBE` or `PROBES`, in name order.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from ..core.facts import Probe

ALL: tuple[Probe[Any], ...]  # Any: each probe fills a type of its own


@cache
def collect() -> tuple[Probe[Any], ...]:
    """Return the probes of all modules here, imported on first use to keep start-up short."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found = (probe for module in modules for probe in _probes_of(vars(module)))
    return tuple(dict.fromkeys(found))  # a module may pass on another's probe


def _probes_of(names: dict[str, Any]) -> tuple[Probe[Any], ...]:
    one = names.get("PROBE")
    return tuple(names.get("PROBES", ())) if one is None else (one, *names.get("PROBES", ()))


def __getattr__(name: str) -> tuple[Probe[Any], ...]:
    if name == "ALL":
        return collect()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
