"""What streams and prompts of a run come to: gaps between tokens, stalls, rates, errors. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .load import Limits, Load


@dataclass(frozen=True, slots=True)
class Token:
    """One chunk with content: its stream, when it came (s since the run began), and its gap.

    `gap_ms` is None for the first of an answer.
    """

    stream: int
    at: float
    gap_ms: float | None


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: when it was sent, when its first token and its end came; why it failed."""

    kind: str  # stream, prompt
    number: int
    sent: float
    first: float | None = None
    ended: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    chunks: int = 0
    error: str = ""

    @property
    def first_ms(self) -> float | None:
        return None if self.first is None else (self.first - self.sent) * 1000


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that a run saw. `lag_ms`: how late the reader's own clock woke up, sample by sample."""

    tokens: tuple[Token, ...]
    asked: tuple[Asked, ...]
    load_from: float
    ended: float
    lag_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread; all None where there are none."""

    count: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    most: float | None = None


def spread(values: Iterable[float]) -> Spread:
    """Return how values are spread, percentiles by linear interpolation."""
    ordered = sorted(values)
    if not ordered:
        return Spread()
    return Spread(
        len(ordered), math.fsum(ordered) / len(ordered), quantile(ordered, 0.5),
        quantile(ordered, 0.95), quantile(ordered, 0.99), ordered[-1],
    )  # fmt: skip


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values."""
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a run: gaps in ms, tokens a second and stream."""

    seconds: float
    tokens: int
    gaps: Spread
    stream_tokens_s: float


@dataclass(frozen=True, slots=True)
class Stall:
    """One long gap: when it ended, in which stream, and how many long prompts ran meanwhile."""

    at: float
    stream: int
    gap_ms: float
    prompts: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to."""

    idle: Phase
    load: Phase
    first: Spread  # time to first token of the streams, ms
    prompts: Spread  # time to first token of the long prompts, ms
    prompts_done: int
    prompt_tokens_s: float  # of all long prompts together, under load
    stalls: tuple[Stall, ...]
    errors: tuple[str, ...]
    lag: Spread
    tokens: int
    tokens_a_chunk: float
    broken: tuple[str, ...] = ()  # limits that were not kept
    gauges: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # least and most seen


STALLS = 5


def summarise(load: Load, seen: Recorded, limits: Limits | None = None) -> Summary:
    """Return what a run came to, and which limits it broke."""
    ratio = tokens_a_chunk(seen.asked)
    idle = _phase(load, seen, 0.0, seen.load_from, ratio)
    under = _phase(load, seen, seen.load_from, seen.ended, ratio)
    prompts = [asked for asked in seen.asked if asked.kind == "prompt"]
    done = [asked for asked in prompts if asked.first is not None and not asked.error]
    read = sum(asked.prompt_tokens or 0 for asked in done)
    summary = Summary(
        idle=idle,
        load=under,
        first=spread(a.first_ms for a in seen.asked if a.kind == "stream" and a.first_ms),
        prompts=spread(asked.first_ms for asked in done if asked.first_ms is not None),
        prompts_done=len(done),
        prompt_tokens_s=read / under.seconds if under.seconds else 0.0,
        stalls=_stalls(seen, prompts),
        errors=tuple(asked.error for asked in seen.asked if asked.error),
        lag=spread(seen.lag_ms),
        tokens=round(len(seen.tokens) * ratio),
        tokens_a_chunk=ratio,
    )
    return replace(summary, broken=tuple(broken(summary, limits or load.limits)))


def tokens_a_chunk(asked: Iterable[Asked]) -> float:
    """Return tokens per chunk by answers that ended with a count: speculation sends several."""
    counted = [one for one in asked if one.completion_tokens and one.chunks > 8]
    chunks = sum(one.chunks for one in counted)
    return sum(one.completion_tokens or 0 for one in counted) / chunks if chunks else 1.0


def _phase(load: Load, seen: Recorded, since: float, until: float, ratio: float) -> Phase:
    tokens = [token for token in seen.tokens if since <= token.at < until]
    seconds = until - since
    rate = len(tokens) * ratio / seconds / load.streams if seconds and load.streams else 0.0
    return Phase(
        seconds, round(len(tokens) * ratio),
        spread(token.gap_ms for token in tokens if token.gap_ms is not None),
        rate,
    )  # fmt: skip


def _stalls(seen: Recorded, prompts: Sequence[Asked]) -> tuple[Stall, ...]:
    worst = sorted((t for t in seen.tokens if t.gap_ms), key=lambda t: -(t.gap_ms or 0))[:STALLS]
    return tuple(
        Stall(t.at, t.stream, t.gap_ms or 0, _running(prompts, t.at - (t.gap_ms or 0) / 1000, t.at))
        for t in worst
    )


def _running(prompts: Iterable[Asked], since: float, until: float) -> int:
    """Return how many long prompts were being read between two moments."""
    return sum(
        asked.sent < until and (asked.first is None or asked.first > since) for asked in prompts
    )


def broken(summary: Summary, limits: Limits) -> Iterable[str]:
    """Yield each limit that a run did not keep. A run without a token is always broken."""
    if summary.tokens == 0:
        yield "not one token came"
    if summary.load.tokens == 0 < summary.tokens:
        yield "not one token came under load"
    checks = (
        ("gap between tokens, p95 under load", summary.load.gaps.p95, limits.gap_p95_ms),
        ("worst stall under load", summary.load.gaps.most, limits.stall_ms),
        ("time to first token of a long prompt, p95", summary.prompts.p95, limits.first_token_ms),
    )
    for what, found, most in checks:
        if most is not None and found is not None and found > most:
            yield f"{what}: {found:.1f} ms, at most {most:g} ms"
    least = limits.stream_tokens_s
    if least is not None and summary.load.stream_tokens_s < least:
        yield f"tokens a second and stream: {summary.load.stream_tokens_s:.1f}, at least {least:g}"
    if len(summary.errors) > limits.errors:
        yield f"{len(summary.errors)} requests failed: {summary.errors[0]}"
