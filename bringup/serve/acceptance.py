"""The result of an acceptance run: as a document, and beside earlier runs and published figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.document import plain
from .aiperf import Aiperf
from .gaps import Recorded, Summary, spread
from .load import FIGURES, Load
from .metrics import Histogram

SCHEMA = "bringup.acceptance/1"


@dataclass(frozen=True, slots=True)
class Honesty:
    """How far the reader can be trusted: its clock's lag, and the frontend's own count beside it.

    Means in ms over the whole run. `bound_p95_ms` is an upper bound: buckets are coarse.
    """

    lag_p99_ms: float | None = None
    lag_most_ms: float | None = None
    own_mean_ms: float | None = None
    frontend_mean_ms: float | None = None
    frontend_p95_at_most_ms: float | None = None
    frontend_count: float | None = None
    through: str = "direct"  # or the host whose SSH connection carried it

    @property
    def difference_ms(self) -> float | None:
        """How much longer the mean gap is here than at the frontend: what the way adds."""
        if self.own_mean_ms is None or self.frontend_mean_ms is None:
            return None
        return self.own_mean_ms - self.frontend_mean_ms


def honesty(seen: Recorded, histogram: Histogram | None, through: str) -> Honesty:
    """Return how the reader compares with the frontend's own histogram."""
    own = spread(t.gap_ms for t in seen.tokens if t.gap_ms is not None)
    lag = spread(seen.lag_ms)
    return Honesty(
        lag_p99_ms=lag.p99,
        lag_most_ms=lag.most,
        own_mean_ms=own.mean,
        frontend_mean_ms=histogram.mean_ms if histogram else None,
        frontend_p95_at_most_ms=histogram.at_most_ms(0.95) if histogram else None,
        frontend_count=histogram.count if histogram else None,
        through=through,
    )


@dataclass(frozen=True, slots=True)
class Accepted:
    """One run: what was asked of what, and what came of it."""

    deployment: str
    model: str
    at: str  # ISO 8601, UTC
    load: Load
    summary: Summary
    honesty: Honesty
    context: Mapping[str, Any] = field(default_factory=dict)  # hosts, images, configurations
    aiperf: Aiperf | None = None  # a second reader's word, where it was asked

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not accepted; () where it is."""
        other = self.aiperf.error if self.aiperf else ""
        return (*self.summary.broken, *([f"AIPerf gave no result: {other}"] if other else []))

    @property
    def is_good(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Beside:
    """One line to compare with: times in ms, tokens a second and stream."""

    name: str
    gap_p95_ms: float | None
    stall_ms: float | None
    idle_tokens_s: float | None
    load_tokens_s: float | None


def beside(run: Accepted, earlier: Iterable[Mapping[str, Any]]) -> tuple[Beside, ...]:
    """Return this run, the last earlier ones of the same load, and published figures."""
    own = Beside(
        "this run", run.summary.load.gaps.p95, run.summary.load.gaps.most,
        run.summary.idle.stream_tokens_s, run.summary.load.stream_tokens_s,
    )  # fmt: skip
    same = [one for one in earlier if one.get("load", {}).get("name") == run.load.name]
    figures = [
        Beside(f.name, f.gap_p95_ms, f.stall_ms, f.idle_tokens_s, f.load_tokens_s)
        for f in FIGURES.get(run.load.name, ())
    ]
    return (own, *(_before(one) for one in same[-3:]), *figures)


def _before(document: Mapping[str, Any]) -> Beside:
    summary = document["summary"]
    return Beside(
        str(document["at"]), summary["load"]["gaps"]["p95"], summary["load"]["gaps"]["most"],
        summary["idle"]["stream_tokens_s"], summary["load"]["stream_tokens_s"],
    )  # fmt: skip


def document(run: Accepted) -> dict[str, Any]:
    """Return a run as plain data with its schema."""
    return {
        "schema": SCHEMA,
        "deployment": run.deployment,
        "model": run.model,
        "at": run.at,
        "good": run.is_good,
        "load": plain(run.load),
        "summary": plain(run.summary),
        "honesty": {**plain(run.honesty), "difference_ms": run.honesty.difference_ms},
        "context": plain(run.context),
        "aiperf": plain(run.aiperf),
    }


def thinned(values: Sequence[tuple[float, float]], columns: int) -> list[tuple[float, float]]:
    """Return the largest value of each of some columns of time: what a plot can show."""
    if not values:
        return []
    first, last = values[0][0], values[-1][0]
    width = (last - first) / columns or 1.0
    most: dict[int, tuple[float, float]] = {}
    for at, value in values:
        column = int((at - first) / width)
        if column not in most or value > most[column][1]:
            most[column] = (at, value)
    return [most[column] for column in sorted(most)]
