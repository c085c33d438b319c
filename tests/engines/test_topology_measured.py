"""What was measured here outweighs what is argued, as far as it speaks of the same thing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.engines.topology import Advice, advise
from bringup.engines.topology_load import Topology, Workload
from bringup.engines.topology_measured import STRONG, WEAK, Trial, Trials, nearest

from .test_topology import DECODE_HEAVY, GEMMA, QWEN, TWO_B200

COPIES, TENSOR, PAIR = Topology
ALL = (Trial(COPIES, 2230, 40.0), Trial(TENSOR, 2500, 45.0), Trial(PAIR, 1330, 9.9))
LONG = Workload(7500, 200)
HERE = Trials(7500, 200, ALL, same_image=True, image="sha256:1", at="2026-11-29")


def word(advice: Advice) -> tuple[Topology | None, int]:
    found = [one for one in advice.arguments if one.variable == "measured"]
    return found[-1].leans, found[-1].weight


def test_the_most_output_decides_where_no_goal_is_set() -> None:
    advice = advise(TWO_B200, QWEN, LONG, trials=HERE)
    assert (advice.choice, advice.knobs) == (TENSOR, {"tensor_parallel": 2})
    assert word(advice) == (TENSOR, STRONG)
    assert not any("bench.topologies" in line for line in advice.changes)


@pytest.mark.parametrize(("goal", "choice"), [(41, COPIES), (20, PAIR), (5, PAIR), (100, TENSOR)])
def test_a_goal_takes_the_most_output_of_those_that_keep_it(goal: float, choice: Topology) -> None:
    assert advise(TWO_B200, QWEN, replace(LONG, token_gap_ms=goal), trials=HERE).choice is choice


def test_another_image_counts_less_and_is_said() -> None:
    advice = advise(TWO_B200, QWEN, LONG, trials=replace(HERE, same_image=False))
    assert advice.choice is COPIES
    assert word(advice) == (TENSOR, WEAK)
    assert any("another image (sha256:1)" in one.because for one in advice.arguments)


def test_other_lengths_count_less_and_are_said() -> None:
    advice = advise(TWO_B200, QWEN, DECODE_HEAVY, trials=HERE)
    assert word(advice) == (TENSOR, WEAK)
    assert any("other lengths" in one.because for one in advice.arguments)


def test_a_measurement_on_one_host_does_not_speak_for_two() -> None:
    assert word(advise(TWO_B200, QWEN, LONG, trials=replace(HERE, hosts=2))) == (None, 0)


def test_what_did_not_start_with_this_image_is_not_advised() -> None:
    died = (Trial(COPIES, why="no nvcc"), Trial(TENSOR, 7655, 13))
    advice = advise(TWO_B200, QWEN, DECODE_HEAVY, trials=replace(HERE, trials=died))
    assert advice.choice is TENSOR
    assert any("copies did not serve here" in one.because for one in advice.arguments)


def test_what_did_not_start_with_another_image_may_start_with_this_one() -> None:
    died = replace(HERE, trials=(Trial(COPIES, why="no nvcc"),), same_image=False)
    assert advise(TWO_B200, QWEN, DECODE_HEAVY, trials=died).choice is COPIES


def test_copies_that_were_measured_refute_that_they_die() -> None:
    trials = Trials(512, 2048, (Trial(COPIES, 9000), Trial(TENSOR, 7069)), True, "x", "now")
    assert advise(TWO_B200, GEMMA, DECODE_HEAVY, trials=trials).choice is COPIES


def test_the_same_image_is_believed_before_nearer_lengths() -> None:
    other = replace(HERE, same_image=False)
    short = Trials(512, 2048, ALL, True, "x", "now")
    assert nearest([other, short], LONG) is short
    assert nearest([short, HERE], LONG) is HERE
    assert nearest([], LONG) is None
