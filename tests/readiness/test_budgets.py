"""Budgets, and what earlier starts say of the rest."""

from __future__ import annotations

import pytest

from bringup.readiness.budgets import (
    SILENCE_S,
    Past,
    alike,
    budget,
    deadline,
    expected,
    remaining,
)
from bringup.readiness.engine_log import Phase, Progress

K3 = Past("b300-04", "prefill", "sha256:a", "K3", 1500, {"WEIGHTS": 60, "GRAPHS": 660})


def test_progress_extends_the_wait_and_silence_does_not() -> None:
    assert deadline(0, 600, moved=None) == 600
    assert deadline(0, 600, moved=590) == 590 + SILENCE_S
    assert deadline(0, 3600, moved=100) == 3600


def test_a_long_earlier_start_widens_the_budget() -> None:
    assert budget(600, []) == 600
    assert budget(600, [K3]) == 3000
    assert budget(3600, [K3]) == 3600


def test_only_the_same_image_and_model_are_alike_and_this_host_goes_first() -> None:
    other = Past("b300-05", "prefill", "sha256:a", "K3", 900)
    newer = Past("b300-04", "prefill", "sha256:b", "K3", 10)
    want = {"role": "prefill", "image": "sha256:a", "model": "K3"}
    assert alike([K3, other, newer], host="b300-04", **want) == [K3]
    assert alike([K3, other, newer], host="b300-09", **want) == [K3, other]
    assert expected([K3, other]) == 1200
    assert expected([]) is None


@pytest.mark.parametrize(
    ("now", "age", "in_phase", "left"),
    [
        (Progress(), 0, 0, 1500),
        (Progress(Phase.WEIGHTS, 0, 96, "x"), 60, 0, 1440),
        (Progress(Phase.WEIGHTS, 48, 96, "x"), 500, 440, 1140),
        (Progress(Phase.GRAPHS, 18, 36, "x"), 900, 200, 420),
        (Progress(Phase.WARMUP, line="x"), 1600, 10, 0),
    ],
)
def test_the_rest_is_told_from_the_same_point_of_an_earlier_start(
    now: Progress, age: float, in_phase: float, left: float
) -> None:
    assert remaining([K3], now, age, in_phase) == pytest.approx(left)


def test_without_an_earlier_start_nothing_is_guessed() -> None:
    assert remaining([], Progress(), 10, 10) is None
