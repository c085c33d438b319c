"""The traffic that a topology is to serve, and what each part of it argues for. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ..core.errors import UsageError


class Topology(Enum):
    """How GPUs are put to one model."""

    COPIES = "copies"  # data parallel: each instance holds the whole model
    TENSOR = "tensor parallel"
    PAIR = "prefill and decode apart"


@dataclass(frozen=True, slots=True)
class Workload:
    """The traffic. Lengths in tokens; goals in ms, None where nobody set one.

    `prefill_tokens_s`: the measured prefill rate of one instance. `reuse`: share of a prompt that
    was seen before.
    """

    input_tokens: int
    output_tokens: int
    concurrency: int | None = None
    requests_s: float | None = None
    token_gap_ms: float | None = None  # goal for the 95th percentile between tokens
    first_token_ms: float | None = None
    prefill_tokens_s: float | None = None
    reuse: float = 0.0


@dataclass(frozen=True, slots=True)
class Argument:
    """One variable's word: for which topology, how much it weighs (0: it only informs), and why."""

    variable: str
    leans: Topology | None
    weight: int
    because: str
    figure: str = ""


TIGHT_MS = 50.0  # proposed: a gap that a reader of streamed text notices
LONG_PROMPT = 8192  # proposed: a prompt that takes a step of its own
QUIET = 0.05  # proposed: prompts take less than this share of one worker's time
BUSY = 0.5  # proposed: from this share on, prompts want workers of their own
B200 = "2×B200 report"
DISTSERVE = "DistServe: 7.4× requests within SLO (arXiv 2401.09670)"
BUZZ = "Beyond the Buzz: the gain shrinks with few GPUs and small models (arXiv 2506.05508)"


def possible(workload: Workload) -> None:
    """Raise UsageError for traffic that cannot be."""
    lengths = (workload.input_tokens, workload.output_tokens)
    stated = (
        workload.concurrency, workload.requests_s, workload.token_gap_ms,
        workload.first_token_ms, workload.prefill_tokens_s,
    )  # fmt: skip
    odd = [n for n in (*lengths, *stated) if n is not None and not 0 < n < math.inf]
    if odd:
        raise UsageError(
            f"cannot argue with {odd[0]:g}", remedy="lengths, rates and goals are above 0"
        )
    if not 0 <= workload.reuse < 1:
        raise UsageError(
            f"cannot argue with a reuse of {workload.reuse:g}", remedy="give a share: 0 to below 1"
        )


def prefill_share(workload: Workload) -> Argument:
    """Return what the share of prompts in the work argues for."""
    fresh = workload.input_tokens * (1 - workload.reuse)
    share = fresh / (fresh + workload.output_tokens)
    said = (
        f"{share:.0%} of the tokens are prefill ({fresh:.0f} in, {workload.output_tokens} out"
        + (f", {workload.reuse:.0%} of a prompt reused)" if workload.reuse else ")")
    )
    if share < 0.5:
        figure = f"{B200}: 512 in, 2,048 out: copies 8,245, tensor 7,655, pair 6,023 tokens/s"
        return Argument("prefill share", Topology.COPIES, 2, said, figure)
    if workload.input_tokens >= LONG_PROMPT:
        figure = "K3 report: 60K prompts beside streams: gap p95 2,873 ms shared, 29.2 ms apart"
        return Argument("prefill share", Topology.PAIR, 2, said, figure)
    figure = f"{B200}: 7,500 in, 200 out: pair 9.9 ms a token against 32.8 ms, at 40 % less output"
    return Argument("prefill share", Topology.PAIR, 1, said, figure)


def latency(workload: Workload) -> Argument:
    """Return what the goal between tokens argues for."""
    goal = workload.token_gap_ms
    if goal is None:
        return Argument("latency goal", Topology.COPIES, 2, "no goal for the gap between tokens",
                        f"{B200}: copies gave most output where latency was free")  # fmt: skip
    stall = _stall_ms(workload)
    if stall is not None and stall > goal:
        said = f"a prompt stalls streams for {stall:,.0f} ms, the goal is {goal:g} ms"
        return Argument("latency goal", Topology.PAIR, 4, said, DISTSERVE)
    if goal > TIGHT_MS:
        return Argument("latency goal", Topology.COPIES, 1, f"a loose goal, {goal:g} ms", BUZZ)
    said = f"a tight goal, {goal:g} ms between tokens"
    return Argument("latency goal", Topology.PAIR, 3, said, DISTSERVE)


def _stall_ms(workload: Workload) -> float | None:
    """How long one prompt keeps the GPUs from streams, when the prefill rate was measured."""
    rate = workload.prefill_tokens_s
    return workload.input_tokens * (1 - workload.reuse) / rate * 1000 if rate else None


def traffic(workload: Workload) -> Iterator[Argument]:
    """Yield what the load says, where somebody told it: prompts only stall streams that run."""
    if workload.concurrency == 1:
        said = "one request at a time: no prompt stalls another's stream"
        yield Argument("traffic", Topology.COPIES, 3, said, f"{B200}: small traffic wants copies")
    elif workload.concurrency is not None:
        yield Argument("traffic", None, 0, f"{workload.concurrency} requests at a time")
    stall, rate = _stall_ms(workload), workload.requests_s
    if rate is None:
        return
    if stall is None:
        said = f"{rate:g} requests/s; without a measured prefill rate nobody knows how busy"
        yield Argument("traffic", None, 0, said)
        return
    busy = rate * stall / 1000
    said = f"{rate:g} requests/s keep {busy:.2f} workers busy with prompts"
    if busy < QUIET:
        yield Argument("traffic", Topology.COPIES, 3, said, f"{B200}: small traffic wants copies")
    else:
        yield Argument("traffic", Topology.PAIR if busy >= BUSY else None, int(busy >= BUSY), said)


def first_token(workload: Workload) -> Iterator[Argument]:
    """Yield whether one worker's prefill alone is longer than the goal for the first token."""
    goal, takes = workload.first_token_ms, _stall_ms(workload)
    if goal is None:
        return
    if takes is None:
        said = f"a goal of {goal:g} ms; measure the prefill rate to compare"
        yield Argument("first token", None, 0, said)
    elif takes > goal:
        said = f"prefill takes {takes:,.0f} ms, the goal is {goal:g} ms: more GPUs an instance"
        yield Argument("first token", Topology.TENSOR, 1, said)
    else:
        yield Argument("first token", None, 0, f"prefill takes {takes:,.0f} of {goal:g} ms")
