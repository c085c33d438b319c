"""What all fleets of this process have cost, for whoever asks at the end of a run."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping

from ..core.remote import Traffic

_SPENT: dict[str, Traffic] = {}
_LOCK = threading.Lock()


def add(traffic: Mapping[str, Traffic]) -> None:
    """Take in what a fleet has cost, when it is closed."""
    with _LOCK:
        for name, cost in traffic.items():
            _SPENT[name] = _sum(_SPENT.get(name, Traffic()), cost)


def take() -> dict[str, Traffic]:
    """Return what was spent since the last time, host by host."""
    with _LOCK:
        spent = dict(_SPENT)
        _SPENT.clear()
    return spent


def _sum(one: Traffic, other: Traffic) -> Traffic:
    names = [field.name for field in dataclasses.fields(Traffic)]
    return Traffic(**{name: getattr(one, name) + getattr(other, name) for name in names})
