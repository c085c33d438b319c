"""Prometheus text: the frontend's own histogram of token gaps, and gauges of the workers' pools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

GAPS = (
    "dynamo_frontend_inter_token_latency_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:time_per_output_token_seconds",
)
"""Histograms of the gap between tokens, by whoever serves; the first that is there counts."""

POOLS = re.compile(
    r"available|evictable|token_usage|kv_cache_usage|cache_usage|used_tokens|queue_reqs|hit_rate"
)
"""Gauges that tell whether a pool saturates."""

_LINE = re.compile(r"^([A-Za-z_:][\w:]*)(\{[^}]*\})? ([-+0-9.eEInfNa]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values up to each bound, in seconds; labels are summed over."""

    bounds: tuple[tuple[float, float], ...] = ()  # upper bound, cumulative count
    count: float = 0.0
    total: float = 0.0

    @property
    def mean_ms(self) -> float | None:
        return self.total / self.count * 1000 if self.count else None

    def at_most_ms(self, share: float) -> float | None:
        """Return the bound under which a share of all values lies: an upper limit, no estimate."""
        wanted = self.count * share
        found = (bound for bound, seen in self.bounds if seen >= wanted)
        bound = next(found, None)
        return None if not self.count or bound is None or math.isinf(bound) else bound * 1000

    def since(self, before: Histogram) -> Histogram:
        """Return what was counted after an earlier reading."""
        old = dict(before.bounds)
        bounds = tuple((bound, seen - old.get(bound, 0.0)) for bound, seen in self.bounds)
        return Histogram(bounds, self.count - before.count, self.total - before.total)


def samples(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield name, labels and value of every sample."""
    for name, labels, value in _LINE.findall(text):
        try:
            yield name, labels, float(value)
        except ValueError:
            continue


def gaps(text: str) -> Histogram | None:
    """Return the histogram of token gaps in a server's metrics, None where it has none."""
    every = list(samples(text))
    for name in GAPS:
        found = _histogram(name, every)
        if found.bounds:
            return found
    return None


def _histogram(name: str, every: Iterable[tuple[str, str, float]]) -> Histogram:
    bounds: dict[float, float] = {}
    count = total = 0.0
    for sample, labels, value in every:
        if sample == f"{name}_bucket":
            bound = re.search(r'le="([^"]+)"', labels)
            if bound:
                at = float(bound[1])
                bounds[at] = bounds.get(at, 0.0) + value
        elif sample == f"{name}_count":
            count += value
        elif sample == f"{name}_sum":
            total += value
    return Histogram(tuple(sorted(bounds.items())), count, total)


def pools(text: str) -> dict[str, float]:
    """Return the gauges of a worker that tell of its pools, summed over labels."""
    found: dict[str, float] = {}
    for name, _, value in samples(text):
        if POOLS.search(name) and not name.endswith(("_bucket", "_sum", "_count", "_total")):
            found[name] = found.get(name, 0.0) + value
    return found


def widened(
    seen: Mapping[str, tuple[float, float]], now: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return least and most of every gauge after one more reading."""
    return {
        **seen,
        **{
            name: (
                min(seen.get(name, (value, value))[0], value),
                max(seen.get(name, (value, value))[1], value),
            )
            for name, value in now.items()
        },
    }
