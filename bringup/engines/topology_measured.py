"""What was measured on the same GPUs speaks louder than any argument about them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .topology_load import Argument, Topology, Workload

STRONG = 30  # more than all arguments together that only weigh
WEAK = 3
FAR = 4.0  # proposed: lengths whose ratio differs by more tell little about each other


@dataclass(frozen=True, slots=True)
class Trial:
    """One topology as it came out. `output_tokens_s` None: it did not serve, and `why`."""

    topology: Topology
    output_tokens_s: float | None = None
    gap_p95_ms: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Trials:
    """Topologies measured against each other with one traffic, on the same kind and count of GPUs.

    `same_image`: with the image that is to serve; another one's word counts less.
    """

    input_tokens: int
    output_tokens: int
    trials: tuple[Trial, ...]
    same_image: bool
    image: str
    at: str
    hosts: int = 1  # of the deployment that is argued about

    @property
    def ratio(self) -> float:
        return self.input_tokens / self.output_tokens

    @property
    def lengths(self) -> str:
        return f"{self.input_tokens:,} in, {self.output_tokens:,} out"


def nearest(every: Iterable[Trials], workload: Workload) -> Trials | None:
    """Return the trials to believe: those with the same image first, then the nearest lengths."""
    ranked = sorted(every, key=lambda one: (not one.same_image, _distance(one, workload)))
    return ranked[0] if ranked else None


def _distance(trials: Trials, workload: Workload) -> float:
    return abs(math.log(trials.ratio * workload.output_tokens / workload.input_tokens))


def measured(trials: Trials | None, workload: Workload) -> Iterator[Argument]:
    """Yield what the measurement argues for, and which topologies did not serve."""
    if trials is None:
        return
    served = [one for one in trials.trials if one.output_tokens_s is not None]
    for one in trials.trials:
        if one.output_tokens_s is None:
            said = f"{one.topology.value} did not serve here ({trials.at}): {one.why}"
            yield Argument("measured", None, 0, said)
    if not served:
        return
    each = ", ".join(_told(one) for one in served)
    said = f"{trials.lengths}, {trials.at}: {each}"
    if len(served) < 2:
        yield Argument("measured", None, 0, f"{said}; no other topology to compare with")
        return
    best = _best(served, workload.token_gap_ms)
    weight, doubts = _weight(trials, workload)
    yield Argument("measured", best.topology if weight else None, weight, said + doubts)


def _told(trial: Trial) -> str:
    gap = "" if trial.gap_p95_ms is None else f", gap p95 {trial.gap_p95_ms:,.1f} ms"
    return f"{trial.topology.value} {trial.output_tokens_s or 0:,.0f} tokens/s{gap}"


def _best(served: list[Trial], goal: float | None) -> Trial:
    """Return the most output among those that keep the goal; where none does, the least gap."""
    if goal is not None:
        gaps = [one for one in served if one.gap_p95_ms is not None]
        within = [one for one in gaps if (one.gap_p95_ms or 0.0) <= goal]
        if gaps and not within:
            return min(gaps, key=lambda one: one.gap_p95_ms or 0.0)
        served = within or served
    return max(served, key=lambda one: one.output_tokens_s or 0.0)


def _weight(trials: Trials, workload: Workload) -> tuple[int, str]:
    """Return how much a measurement counts, and what speaks against it in words."""
    if trials.hosts > 1:
        return 0, f"; on one host, {trials.hosts} are to serve"
    doubts = []
    if not trials.same_image:
        doubts.append(f"with another image ({trials.image})")
    if _distance(trials, workload) > math.log(FAR):
        doubts.append("with other lengths than asked about")
    if doubts:
        return WEAK, f"; counts less: {' and '.join(doubts)}"
    return STRONG, ""
