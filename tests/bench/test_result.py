"""Result files of the real tool, and files that are no result.

The files in data/ were written by vllm/benchmarks/serve.py of the wheels 0.24.0 and 0.33.0, run
against the real frontend of Dynamo 1.3.0.post1 with a worker of 20 ms a token.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bringup.bench.command import bench_words, place_of, refusals
from bringup.bench.result import parse
from bringup.bench.traffic import FIGURES, TRAFFIC, Traffic

from .test_derive import DEPLOYMENT

DATA = Path(__file__).parent / "data"
EIGHT = Traffic("512x64", 512, 64, 8)


@pytest.mark.parametrize("version", ["0.24.0", "0.33.0"])
def test_the_real_tools_file_is_read_whole(version: str) -> None:
    found = parse((DATA / f"vllm-{version}.json").read_text(), EIGHT)
    assert (found.asked, found.completed, found.output_tokens) == (8, 8, 512)
    assert found.fault == ""
    assert found.tpot_ms == pytest.approx(20.9, abs=0.2)
    assert found.itl_p50_ms is not None
    assert found.itl_p95_ms is not None
    assert found.itl_p99_ms is not None
    assert found.itl_p50_ms < found.itl_p95_ms <= found.itl_p99_ms


def changed(**more: Any) -> str:
    return json.dumps({**json.loads((DATA / "vllm-0.24.0.json").read_text()), **more})


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"total_output_tokens": 0, "output_throughput": 0.0}, "not one token came"),
        ({"completed": 5}, "3 of 8 requests failed"),
        ({"p95_itl_ms": float("nan")}, ""),
    ],
)
def test_a_run_without_tokens_or_with_failed_requests_is_none(
    more: dict[str, Any], fault: str
) -> None:
    assert parse(changed(**more), EIGHT).fault == fault


def test_what_is_no_number_is_not_told_rather_than_zero() -> None:
    assert parse(changed(p95_itl_ms=float("nan")), EIGHT).itl_p95_ms is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"duration": "2 s"}'])
def test_a_file_without_a_result_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text, EIGHT)


@pytest.mark.parametrize("version", ["0.24.0", "0.33.0", "0.31.0"])
def test_no_listed_version_refuses_the_command(version: str) -> None:
    words = bench_words(place_of(DEPLOYMENT, "http://127.0.0.1:8000"), EIGHT, "r.json")
    assert refusals(words, version) == ()


def test_a_flag_that_the_tool_does_not_know_is_refused() -> None:
    (found,) = refusals(("vllm", "bench", "serve", "--random-inputs", "5"), "0.24.0")
    assert found.id == "flag-unknown"


def test_the_report_measured_with_the_same_traffic() -> None:
    assert {figure.traffic for figure in FIGURES} == set(TRAFFIC)
