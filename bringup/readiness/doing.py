"""What a worker is at, in a few words."""

from __future__ import annotations

from .stages import WAITS, Stage
from .watch import Watched


def doing(watched: Watched) -> str:
    """Return in a few words what a worker is at."""
    if watched.lost:
        return watched.lost
    if watched.stage >= Stage.LISTED:
        if watched.worker.follows:
            return "serves with rank 0"
        return "registered" if watched.worker.registers else "up"
    if watched.stage is Stage.ENGINE:
        return f"{WAITS[Stage.ENGINE]}: {watched.progress}"
    text = WAITS[watched.stage]
    return f"{text} ({watched.waits_for})" if watched.waits_for else text
