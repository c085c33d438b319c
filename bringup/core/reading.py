"""One of three answers about a host: a value, surely absent, or unknown with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """The value, and the line that shows it."""

    value: T
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """The thing is surely not there; `evidence` is the line that proves it."""

    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody could look; `why` says what stood in the way."""

    why: str
    evidence: str = ""


Reading: TypeAlias = Known[T] | Absent | Unknown
"""Three answers, never two. A fallback that needs `Absent` never fires on `Unknown`."""


def value_of(reading: Reading[T]) -> T | None:
    """Return the value, or None for both absent and unknown: for display, never for a decision."""
    return reading.value if isinstance(reading, Known) else None


def evidence_of(reading: Reading[T]) -> str:
    """Return the line that shows the answer, or why there is none."""
    if isinstance(reading, Unknown):
        return reading.evidence or f"unknown: {reading.why}"
    return reading.evidence


def why_not(reading: Reading[T]) -> str:
    """Return why nobody could look, else what shows that it is absent, or not as wished."""
    return reading.why if isinstance(reading, Unknown) else reading.evidence
