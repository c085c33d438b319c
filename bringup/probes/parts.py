"""Join what several sources told of one fact: the first that tells a field wins."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

from ..core.reading import Absent, Known, Reading, Unknown

T = TypeVar("T")

NOT_ASKED = Unknown("not asked")


def is_told(value: object) -> bool:
    """Tell whether a field holds an answer: not None, not `Unknown`, nothing empty.

    Where none is an answer, a field says None for "not told" and () for "none".
    """
    return value is not None and not isinstance(value, Unknown) and value not in _EMPTY


_EMPTY: tuple[object, ...] = ("", {}, (), frozenset())


def joined(one: T, other: T) -> T:
    """Return `one` with the fields that it lacks taken from `other`.

    Mappings and sets are united.
    """
    if not dataclasses.is_dataclass(one) or isinstance(one, type):
        raise TypeError(f"cannot join {type(one).__name__}: not a dataclass")
    changes: dict[str, Any] = {}  # Any: fields have types of their own
    for field in dataclasses.fields(one):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, dict) and isinstance(its, dict):
            changes[field.name] = {**its, **mine}
        elif isinstance(mine, frozenset) and isinstance(its, frozenset):
            changes[field.name] = mine | its
        elif not is_told(mine) and (is_told(its) or mine in (None, NOT_ASKED)):
            changes[field.name] = its
    return dataclasses.replace(one, **changes)


def gathered(readings: Iterable[Reading[T]]) -> Reading[T]:
    """Return one reading: all that is known joined, else absent, else why it is unknown."""
    told = tuple(readings)
    known = [reading for reading in told if isinstance(reading, Known)]
    if known:
        whole = known[0].value
        for reading in known[1:]:
            whole = joined(whole, reading.value)
        return Known(whole, next((r.evidence for r in known if r.evidence), ""))
    absent = [reading for reading in told if isinstance(reading, Absent)]
    unknown = [r for r in told if isinstance(r, Unknown) and r != NOT_ASKED]
    return absent[0] if absent else unknown[0] if unknown else NOT_ASKED
