"""How long it will take yet, by what took how long before."""

from __future__ import annotations

import pytest

from bringup.bench.clock import Step, left, of_row, said, steps
from bringup.bench.table import MEASURED, Row
from bringup.engines.topology_load import Topology

from .test_result import EIGHT

COPIES, TENSOR, _ = Topology
ALL = steps((COPIES, TENSOR), (EIGHT,))
KNOWN: dict[Step, float] = {(COPIES, "start"): 100, (COPIES, EIGHT.name): 40}


def test_an_unknown_topology_may_take_as_long_as_the_known_one() -> None:
    assert left(ALL, KNOWN, 30) == 70 + 40 + 100 + 40


def test_what_overruns_is_not_taken_from_the_rest() -> None:
    assert left(ALL, KNOWN, 500) == 40 + 100 + 40


def test_without_any_earlier_run_nobody_knows() -> None:
    assert left(ALL, {}) is None


@pytest.mark.parametrize(("start_s", "known"), [(9.0, {(TENSOR, "start"): 9.0}), (None, {})])
def test_only_a_start_that_came_up_tells(start_s: float | None, known: dict[Step, float]) -> None:
    assert of_row(Row(TENSOR, MEASURED, start_s)) == known


@pytest.mark.parametrize(
    ("step", "rest", "spent", "text"),
    [
        (90, 130, 50, "2 min 10 s left in all"),
        (90, 40, 100, "longer than the 90 s expected, then 40 s for the rest"),
        (90, 0, 250, "longer than the 90 s expected"),
        (None, None, 5, "time left not known yet"),
        (90, None, 5, "time left not known yet"),
    ],
)
def test_a_step_that_overruns_is_told_as_that_and_never_as_no_time_left(
    step: float | None, rest: float | None, spent: float, text: str
) -> None:
    assert said(step, rest, spent) == text
