"""The benchmark plans its runs into the time it is given, and tells what it left out."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.fleet import schedule
from benchmarks.fleet.goals import GOALS, Live, goals_table, reached
from benchmarks.fleet.report import Run, Skipped, table
from benchmarks.fleet.rivals import JOBS, NAMES
from benchmarks.fleet.schedule import AROUND_S, SET_UP_S, Case, counts, expected

FULL = [
    Case(hosts, rtt_ms, tool, job)
    for hosts, rtt_ms in product((1, 10, 50, 100), (0.0, 20.0))
    for tool, job in product(NAMES, JOBS)
]


def seconds_of(plan: dict[Case, int]) -> float:
    fleets = {(case.hosts, case.rtt_ms) for case in plan}
    starts = sum(SET_UP_S[0] + SET_UP_S[1] * hosts for hosts, _ in fleets)
    each = {case: expected(case, ()) + AROUND_S[0] + AROUND_S[1] * case.hosts for case in plan}
    return starts + sum(each[case] * count for case, count in plan.items())


@pytest.mark.parametrize("limit", [600, 1500, 1800, 6000])
def test_a_plan_fits_into_its_time(limit: float) -> None:
    assert seconds_of(counts(FULL, limit, 5)) <= limit


def test_half_an_hour_gives_medians_for_us_and_ssh_and_one_run_of_the_slow() -> None:
    plan = counts(FULL, 1800, 5)
    quick = [n for case, n in plan.items() if case.tool in ("bringup", "ssh") and case.hosts <= 10]
    assert min(quick) >= 3
    assert all(n for case, n in plan.items() if case.tool != "ansible")
    left = {(case.tool, case.hosts) for case, n in plan.items() if not n}
    assert left <= {("ansible", 10), ("ansible", 50), ("ansible", 100)}


def test_without_a_limit_everything_is_run_as_often_as_told() -> None:
    assert set(counts(FULL, None, 4).values()) == {4}


def test_a_run_is_expected_to_take_what_it_took_so_far() -> None:
    case = Case(100, 0.0, "ssh", "facts")
    slow = Run("ssh", "facts", 10, 0.0, 2 * schedule.guess("ssh", "facts", 10), 1, 1, 1)
    assert expected(case, [slow]) == pytest.approx(2 * expected(case, []))


def test_what_there_was_no_time_for_stands_in_the_table() -> None:
    run = Run("bringup", "same", 100, 0.0, 2.0, 0.7, 40, 18)
    left = [Skipped("ansible", "same", 100, 0.0, 660), Skipped("ssh", "same", 200, 0.0, 30)]
    text = table([run], "same", left)
    assert "| 200 | 0 | ssh | not run, would take about 30 s |" in text
    assert "| 100 | 0 | ansible | not run, would take about 11 min |" in text


def test_goals_are_told_by_what_was_measured() -> None:
    run = Run("bringup", "facts", 100, 0.0, 5.0, 0.3, 40, 18)
    live = Live("bringup", "again", 20.0, 1, 23.0)
    text = goals_table([run], [live])
    assert "| Facts, 100 hosts, wall | 2.5 s | 5 s | 2.00 |" in text
    assert "| One more command, RTT 20 ms | 23 ms | 23 ms | 1.00 |" in text
    assert sum(reached(goal, [run], [live]) is None for goal in GOALS) == len(GOALS) - 3
