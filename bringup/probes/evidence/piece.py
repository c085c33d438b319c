"""One piece of what a command told, and how a reader of commands is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.reading import Absent, Known, Reading, Unknown
from .asked import Asked, Output


@dataclass(frozen=True, slots=True)
class Piece:
    """A reading of one type of fact, or of a part that is joined into one (see `joining`)."""

    fact: type
    reading: Reading[Any]  # Any: of the type in `fact`


Read: TypeAlias = Callable[[Asked, Output], Iterable[Piece]]
Readers: TypeAlias = Mapping[str, Read]
"""Readers by program."""


def known(value: object, evidence: str = "") -> Piece:
    """Return a piece whose fact is the type of its value."""
    return Piece(type(value), Known(value, evidence))


def absent(fact: type, evidence: str) -> Piece:
    return Piece(fact, Absent(evidence))


def unknown(fact: type, why: str, evidence: str = "") -> Piece:
    return Piece(fact, Unknown(why, evidence))


def trouble_of(output: Output, program: str) -> str:
    """Return why a program gave no answer, or "" where it answered."""
    if output.is_late:
        return f"{program} timed out"
    if output.is_refused:
        return "permission denied"
    return f"{program} is not installed" if output.is_missing else ""
