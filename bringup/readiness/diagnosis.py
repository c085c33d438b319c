"""What was found in one log, or of one worker as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.rules import Finding
from .engine_log import Phase, progress
from .failures import Match, telling


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found in one log: known causes, the likeliest first; else its last words.

    `stands`: how the worker stands whose log it is. `findings` are of those who looked closer.
    """

    source: str
    matches: tuple[Match, ...]
    said: tuple[str, ...] = ()
    stands: str = ""
    is_well: bool = False
    is_loading: bool = False  # it comes up, and nothing says that it will not
    findings: tuple[Finding, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)  # what stands for HOST and the like


def came_up(lines: list[str]) -> str:
    """Return the line by which an engine serves, where no line after it sounds like a fault."""
    now = progress(lines)
    if now.phase is not Phase.SERVING:
        return ""
    at = next(number for number, line in enumerate(lines) if line.strip() == now.line)
    return "" if telling(lines[at + 1 :]) else now.line
