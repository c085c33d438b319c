"""Loads that an acceptance run puts on a deployment, by name.

A load runs decode streams alone for a while, then with long prompts on top, and asks what the
streams' readers see of it. Counts of tokens are per request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

K3_REPORT = "K3 report"
OWN = "proposed"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run must keep to. Times in ms; None means: not judged."""

    gap_p95_ms: float | None = None
    stall_ms: float | None = None
    first_token_ms: float | None = None
    stream_tokens_s: float | None = None
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """One load. Long prompts come evenly spread, or `at_once` at a time, one after the other.

    `distinct` is how many different prompts there are: fewer than `prompts` makes revisits.
    """

    name: str
    title: str
    source: str
    streams: int
    prompts: int
    prompt_tokens: int
    idle_s: float
    load_s: float
    at_once: int | None = None
    distinct: int | None = None
    answer_tokens: int = 1  # of a long prompt
    stream_prompt_tokens: int = 32
    limits: Limits = field(default_factory=Limits)

    @property
    def described(self) -> str:
        """The load in numbers."""
        pace = f"{self.at_once} at a time" if self.at_once else f"in {self.load_s:g} s"
        prompts = f"{self.prompts} prompts of {self.prompt_tokens:,} tokens"
        return f"{self.streams} streams, {prompts} {pace}"


LOADS: Mapping[str, Load] = MappingProxyType(
    {
        load.name: load
        for load in (
            Load(
                "k3-report", "8 streams, 29 prompts of 60,000 tokens in 120 s", K3_REPORT,
                streams=8, prompts=29, prompt_tokens=60_000, idle_s=30, load_s=120,
                limits=Limits(gap_p95_ms=100, stall_ms=1000),
            ),
            Load(
                "small", "4 streams, 8 prompts of 8,000 tokens in 40 s", OWN,
                streams=4, prompts=8, prompt_tokens=8_000, idle_s=10, load_s=40,
                limits=Limits(gap_p95_ms=100, stall_ms=1000),
            ),
            Load(
                "smoke", "2 streams, 3 prompts of 2,000 tokens in 6 s", OWN,
                streams=2, prompts=3, prompt_tokens=2_000, idle_s=3, load_s=6,
                limits=Limits(stall_ms=5000),
            ),
            Load(
                "hicache-flood", "soak: 4 at a time, 154 new prompts of 60,000 tokens", K3_REPORT,
                streams=2, prompts=154, prompt_tokens=60_000, idle_s=10, load_s=1800, at_once=4,
                limits=Limits(stall_ms=5000),
            ),
            Load(
                "hicache-saturate", "soak: 4 at a time, 24 prompts of 200,000 tokens, beyond the "
                "device's pool", K3_REPORT,
                streams=2, prompts=24, prompt_tokens=200_000, idle_s=10, load_s=1800, at_once=4,
                limits=Limits(stall_ms=5000),
            ),
            Load(
                "hicache-revisit", "soak: 12 prompts of 300,000 tokens, each asked twice, so that "
                "the host's pool gives them back", K3_REPORT,
                streams=2, prompts=24, prompt_tokens=300_000, idle_s=10, load_s=1800, at_once=4,
                distinct=12, limits=Limits(stall_ms=5000),
            ),
        )
    }
)  # fmt: skip
"""The report's own counts; its soak was 30 minutes and over 200 requests in its three forms."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A published result of one load, to stand beside a run's. Times in ms, rates per stream."""

    name: str
    gap_p95_ms: float
    stall_ms: float | None = None
    idle_tokens_s: float | None = None
    load_tokens_s: float | None = None


FIGURES: Mapping[str, tuple[Figure, ...]] = MappingProxyType(
    {
        "k3-report": (
            Figure("K3 report, shared GPUs", 2873),
            Figure("K3 report, with a fairness patch", 1075),
            Figure("K3 report, prefill and decode apart", 29.2, 403, 36.0, 34.2),
        )
    }
)
