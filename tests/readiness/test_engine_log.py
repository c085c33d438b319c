"""Progress of an engine by its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.readiness.engine_log import Phase, Progress, progress
from bringup.readiness.log_lines import lines_of

SAMPLES = Path(__file__).parent / "samples"


def healthy(engine: str) -> list[str]:
    return lines_of((SAMPLES / f"healthy-{engine}.log").read_text())


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_whole_start_ends_in_serving(engine: str) -> None:
    assert progress(healthy(engine)).phase is Phase.SERVING


def steps(lines: list[str]) -> list[str]:
    """The texts that a live view shows, one after the other."""
    seen, now = list[str](), Progress()
    for line in lines:
        now = progress([line], now)
        if not seen or seen[-1] != str(now):
            seen.append(str(now))
    return seen


def test_an_sglang_start_is_seen_step_by_step() -> None:
    assert steps(healthy("sglang")) == [
        "started", "ranks join", "weights", "weights 0/96", "weights 48/96", "weights 96/96",
        "compiling", "KV cache", "graph capture", "graph capture 1/36", "graph capture 36/36",
        "warm-up", "up",
    ]  # fmt: skip


def test_a_vllm_start_is_seen_step_by_step() -> None:
    assert steps(healthy("vllm")) == [
        "started", "ranks join", "weights", "weights 2/4", "weights 4/4", "compiling", "KV cache",
        "graph capture 26/51", "graph capture 51/51", "warm-up", "up",
    ]  # fmt: skip


def test_another_rank_that_starts_its_bar_anew_is_no_progress() -> None:
    bar = "Loading safetensors checkpoint shards:  50% Completed | {}/96 [00:01<00:01,  2it/s]"
    before = progress([bar.format(48)])
    assert progress([bar.format(3)], before) == before
    assert progress([bar.format(49)], before).passed == before.passed + 1


def test_lines_that_nobody_knows_are_no_progress() -> None:
    before = progress(["Loading model weights"])
    assert progress(["still here", "INFO: 10.0.0.1 GET /health 503"], before) == before


def test_share_is_known_where_something_is_counted() -> None:
    assert Progress(Phase.WEIGHTS, 24, 96).share == 0.25
    assert Progress(Phase.COMPILING).share is None
