"""How long each stage may take, how long it took before, and how long it is likely to take yet."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .engine_log import Phase, Progress
from .stages import Stage

SECONDS: Mapping[Stage, float] = {
    Stage.ETCD: 60,
    Stage.NATS: 60,
    Stage.CONTAINER: 60,
    Stage.ENGINE: 600,  # the worker's own ready_timeout_s stands for it
    Stage.REGISTERED: 60,
    Stage.LISTED: 90,  # a frontend of Dynamo 1.5 or newer tries again after up to 30 s
    Stage.ANSWERS: 180,  # the first request opens RDMA connections and may compile
    Stage.PAIRED: 30,
}
"""Proposed: where a stage takes longer, something is wrong that waiting does not mend."""

SILENCE_S = 300.0
"""Progress buys this much at least; a log without any buys nothing (proposed)."""

LOST_S = 90.0
"""How long a host may not be reachable before the wait ends (proposed)."""


@dataclass(frozen=True, slots=True)
class Past:
    """One earlier start that came up: seconds to its end, and to the beginning of each phase."""

    host: str
    role: str
    image: str
    model: str
    seconds: float
    marks: Mapping[str, float] = field(default_factory=dict)


def alike(history: Iterable[Past], *, host: str, role: str, image: str, model: str) -> list[Past]:
    """Return earlier starts of the same image and model: of this very host where there are any."""
    same = [past for past in history if (past.image, past.model) == (image, model)]
    here = [past for past in same if (past.host, past.role) == (host, role)]
    return (here or [past for past in same if past.role == role])[-5:]


def expected(past: Iterable[Past]) -> float | None:
    """Return how long a start is likely to take, or None when there was none before."""
    took = [one.seconds for one in past]
    return statistics.median(took) if took else None


def budget(timeout_s: float, past: Iterable[Past]) -> float:
    """Return how long loading may take: the knob's word, or twice the longest earlier start."""
    return max(timeout_s, 2 * max((one.seconds for one in past), default=0.0))


def deadline(began: float, seconds: float, moved: float | None) -> float:
    """Return when the wait ends: progress extends it, silence does not."""
    ends = began + seconds
    return ends if moved is None else max(ends, moved + SILENCE_S)


def remaining(past: Iterable[Past], now: Progress, age_s: float, in_phase_s: float) -> float | None:
    """Return how long loading is likely to take yet; None where no earlier start tells.

    An earlier start tells how long it took from the same phase on; what is over of this phase, by
    its bar where it has one, is taken off.
    """
    guesses = [_left(one, now, age_s, in_phase_s) for one in past]
    return statistics.median(guesses) if guesses else None


def _left(past: Past, now: Progress, age_s: float, in_phase_s: float) -> float:
    began = past.marks.get(now.phase.name)
    if began is None:
        return max(0.0, past.seconds - age_s)
    later = [t for p, t in past.marks.items() if Phase[p] > now.phase and t >= began]
    until = min(later, default=past.seconds)
    spent = now.share * (until - began) if now.share is not None else in_phase_s
    return max(past.seconds - until, past.seconds - began - spent, 0.0)
