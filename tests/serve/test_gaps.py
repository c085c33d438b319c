"""What a run comes to, what limits say, and what it is compared with: without a clock or a net."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.report.accept import page, trust
from bringup.report.svg import Axis, number
from bringup.serve.acceptance import Accepted, beside, document, honesty, thinned
from bringup.serve.gaps import Asked, Recorded, Token, spread, summarise
from bringup.serve.load import LOADS, Limits
from bringup.serve.metrics import Histogram, gaps, pools, widened
from bringup.serve.words import prompt

LOAD = LOADS["smoke"]
METRICS = """\
# HELP dynamo_frontend_inter_token_latency_seconds gaps
dynamo_frontend_inter_token_latency_seconds_bucket{model="a",le="0.024"} 90
dynamo_frontend_inter_token_latency_seconds_bucket{model="a",le="0.045"} 99
dynamo_frontend_inter_token_latency_seconds_bucket{model="a",le="+Inf"} 100
dynamo_frontend_inter_token_latency_seconds_sum{model="a"} 2.5
dynamo_frontend_inter_token_latency_seconds_count{model="a"} 100
sglang:token_usage{tp="0"} 0.97
sglang:num_requests_total{tp="0"} 7
"""


def recorded(*, stall_ms: float = 20.0, tokens: int = 100, error: str = "") -> Recorded:
    """Two streams of a token every 20 ms, one stall under load, one long prompt."""
    told = [Token(n % 2, 0.02 * n, 20.0) for n in range(tokens)]
    told += [Token(0, 1.5, stall_ms)] if tokens else []
    asked = (
        Asked("prompt", 0, sent=1.2, first=1.6, ended=1.7, prompt_tokens=2000, error=error),
        Asked("stream", 0, sent=0.0, first=0.05, completion_tokens=120, chunks=60),
    )
    return Recorded(tuple(told), asked, load_from=1.0, ended=2.0, lag_ms=(0.1, 0.2, 0.4))


def test_a_stall_under_load_is_found_with_the_prompt_that_was_read() -> None:
    summary = summarise(LOAD, recorded(stall_ms=600))
    assert summary.load.gaps.most == 600
    assert summary.idle.gaps.most == 20
    stall = summary.stalls[0]
    assert (stall.stream, stall.gap_ms, stall.prompts) == (0, 600, 1)


def test_tokens_of_a_chunk_are_told_by_answers_that_count_them() -> None:
    summary = summarise(LOAD, recorded())
    assert summary.tokens_a_chunk == 2.0
    assert summary.tokens == 202


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(stall_ms=500), "worst stall under load: 600.0 ms, at most 500 ms"),
        (Limits(gap_p95_ms=10), "gap between tokens, p95 under load"),
        (Limits(first_token_ms=300), "time to first token of a long prompt"),
        (Limits(stream_tokens_s=1000), "tokens a second and stream"),
    ],
)
def test_a_limit_that_is_not_kept_is_named(limits: Limits, said: str) -> None:
    assert said in summarise(LOAD, recorded(stall_ms=600), limits).broken[0]


def test_a_run_within_its_limits_is_good() -> None:
    assert summarise(LOAD, recorded(), Limits(gap_p95_ms=50, stall_ms=50)).broken == ()


def test_a_run_without_a_token_is_never_good() -> None:
    assert "not one token came" in summarise(LOAD, recorded(tokens=0), Limits()).broken


def test_a_failed_request_is_never_good_unless_allowed() -> None:
    seen = recorded(error="HTTP 500")
    assert "1 requests failed: HTTP 500" in summarise(LOAD, seen, Limits()).broken
    assert summarise(LOAD, seen, Limits(errors=1)).broken == ()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_percentiles_lie_within_the_values_and_in_order(values: list[float]) -> None:
    found = spread(values)
    assert found.p50 is not None
    assert found.p95 is not None
    assert found.p99 is not None
    assert found.most is not None
    assert min(values) <= found.p50 <= found.p95 <= found.p99 <= found.most == max(values)


def test_the_frontends_histogram_gives_mean_and_an_upper_bound() -> None:
    found = gaps(METRICS)
    assert found is not None
    assert found.mean_ms == 25.0
    assert found.at_most_ms(0.95) == 45.0
    assert found.at_most_ms(0.999) is None
    assert found.since(found).count == 0
    assert gaps("odd text") is None


def test_pools_of_a_worker_are_gauges_only() -> None:
    assert pools(METRICS) == {"sglang:token_usage": 0.97}
    seen = widened({}, {"a": 2.0})
    assert widened(seen, {"a": 1.0}) == {"a": (1.0, 2.0)}


def accepted(stall_ms: float = 600) -> tuple[Accepted, Recorded]:
    seen = recorded(stall_ms=stall_ms)
    summary = summarise(LOAD, seen, Limits(stall_ms=500))
    return Accepted("toy", "m", "2026-09-01T08:00:00Z", LOAD, summary,
                    honesty(seen, gaps(METRICS), "direct")), seen  # fmt: skip


def test_earlier_runs_of_the_same_load_and_published_figures_stand_beside() -> None:
    run, _ = accepted()
    other = replace(run, load=LOADS["small"], at="other")
    names = [row.name for row in beside(run, [document(run), document(other)])]
    assert names == ["this run", "2026-09-01T08:00:00Z"]
    k3 = replace(run, load=LOADS["k3-report"])
    assert [row.gap_p95_ms for row in beside(k3, [])][1:] == [2873, 1075, 29.2]


def test_the_k3_load_is_the_reports() -> None:
    k3 = LOADS["k3-report"]
    assert (k3.streams, k3.prompts, k3.prompt_tokens, k3.load_s) == (8, 29, 60_000, 120)
    assert k3.prompts * k3.prompt_tokens == 1_740_000


def test_soaks_come_to_over_two_hundred_requests() -> None:
    assert sum(load.prompts for name, load in LOADS.items() if name.startswith("hicache")) > 200


def test_the_page_is_whole_and_needs_no_other_file() -> None:
    run, seen = accepted()
    text = page(run, seen, beside(run, []))
    assert text.count("<svg") == text.count("</svg>") == 3
    assert not re.search(r"(src|href)=|https?://|nan|inf\b", text)
    assert "not accepted" in text
    assert "worst stall under load" in text


def test_the_page_counts_each_way_in_which_requests_failed() -> None:
    run, seen = accepted()
    failed = replace(run.summary, errors=("HTTP 503: <busy>", "cut off", "HTTP 503: <busy>"))
    text = page(replace(run, summary=failed), seen, ())
    assert "<li>2 × HTTP 503: &lt;busy&gt;</li><li>1 × cut off</li>" in text


def test_a_page_of_an_empty_run_can_be_made() -> None:
    seen = Recorded((), (), load_from=0.0, ended=0.0)
    run, _ = accepted()
    empty = replace(run, summary=summarise(LOAD, seen))
    assert "not one token came" in page(empty, seen, beside(empty, []))


def test_the_readers_own_error_is_told() -> None:
    run, _ = accepted()
    assert "mean gap" in trust(run)
    bare = replace(run, honesty=honesty(recorded(), None, "b300-04"))
    assert "through b300-04" in trust(bare)
    assert "was not read" in trust(bare)
    assert honesty(recorded(), Histogram(), "direct").frontend_mean_ms is None


def test_prompts_of_one_run_share_no_beginning() -> None:
    texts = {prompt(number, 50, "salt")[:40] for number in range(100)}
    assert len(texts) == 100
    assert prompt(1, 50, "salt") == prompt(1, 50, "salt")
    assert prompt(1, 50, "other") != prompt(1, 50, "salt")
    assert len(prompt(3, 500, "s").split()) == 501


def test_thinning_keeps_the_largest_of_each_moment() -> None:
    points = [(n / 1000, float(n % 7)) for n in range(1000)]
    points[501] = (0.501, 99.0)
    kept = thinned(points, 50)
    assert len(kept) <= 51
    assert max(value for _, value in kept) == 99.0


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(1, 1000, "", is_log=True), ["1", "10", "100", "1,000"]),
        (Axis(0, 9, ""), ["0", "2", "4", "6", "8"]),
        (Axis(0.5, 3.5, "", is_whole=True), ["1", "2", "3"]),
        (Axis(0, 0.7, ""), ["0", "0.2", "0.4", "0.6"]),
    ],
)
def test_axes_are_marked_at_round_values(axis: Axis, ticks: list[str]) -> None:
    assert [number(round(tick, 6)) for tick in axis.ticks()] == ticks
