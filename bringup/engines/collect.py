"""Collect the engines: every module of this package that holds an `ENGINE`, in name order."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from .engine import Engine


@cache
def engines() -> Mapping[str, Engine]:
    """Return all engines by name."""
    package = importlib.import_module(__package__)
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = (importlib.import_module(f"{__package__}.{name}") for name in names)
    found = (getattr(module, "ENGINE", None) for module in modules)
    return MappingProxyType({engine.name: engine for engine in found if engine is not None})
