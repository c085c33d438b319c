"""What happens while work goes on, as values: the flow tells, a screen shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened on one host. `share` is how much of the stage is done, 0 to 1."""

    host: str
    stage: str  # probe, decide, observe, apply, verify, …
    text: str = ""
    share: float | None = None
    is_end: bool = False


Listen: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Listen to nothing."""
