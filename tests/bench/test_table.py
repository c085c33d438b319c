"""A run as a value: what is done, what the next run goes on with, how it came out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.bench.table import (
    FAILED,
    LEFT_OUT,
    MEASURED,
    REFUSED,
    Bench,
    Row,
    best,
    code_of,
    with_row,
)
from bringup.core.errors import Exit, UsageError
from bringup.engines.topology_load import Topology
from bringup.flow.bench_open import gone_on, traffic_of

from .test_advice import BENCH, RESULT
from .test_result import EIGHT

COPIES, TENSOR, PAIR = ALL = tuple(Topology)
NEW = replace(BENCH, at="2026-11-30T08:00:00Z", rows=(), topologies=ALL)


def bench(*rows: Row) -> Bench:
    return replace(BENCH, topologies=ALL, rows=rows)


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ((MEASURED, MEASURED, LEFT_OUT), Exit.DONE),
        ((MEASURED, FAILED, REFUSED), Exit.FAILED),
        ((MEASURED, REFUSED, LEFT_OUT), Exit.BLOCKED),
        ((LEFT_OUT, LEFT_OUT, LEFT_OUT), Exit.FAILED),
    ],
)
def test_the_gravest_row_gives_the_exit_code(states: tuple[str, ...], code: Exit) -> None:
    assert code_of(bench(*map(Row, ALL, states))) is code


def test_a_run_that_was_cut_off_is_gone_on_with() -> None:
    before = bench(Row(COPIES, MEASURED, 60, (RESULT,)))
    again = gone_on(NEW, [before], ALL)
    assert (again.at, again.todo) == (before.at, (TENSOR, PAIR))


def test_what_was_refused_is_tried_again() -> None:
    before = bench(Row(COPIES, MEASURED, 60, (RESULT,)), Row(TENSOR, FAILED), Row(PAIR, REFUSED))
    assert gone_on(NEW, [before], ALL).todo == (PAIR,)


def test_a_finished_run_is_followed_by_a_new_one() -> None:
    before = bench(Row(COPIES, MEASURED), Row(TENSOR, FAILED), Row(PAIR, LEFT_OUT))
    assert gone_on(NEW, [before], ALL) == NEW


@pytest.mark.parametrize(
    "other",
    [
        replace(NEW, subject=replace(NEW.subject, image="sha256:2")),
        replace(NEW, subject=replace(NEW.subject, driver="590.1")),
        replace(NEW, traffic=(replace(EIGHT, prompts=9),)),
        replace(NEW, host="h2"),
    ],
    ids=["image", "driver", "traffic", "host"],
)
def test_a_run_of_something_else_is_not_gone_on_with(other: Bench) -> None:
    before = bench(Row(COPIES, MEASURED, 60, (RESULT,)))
    assert gone_on(other, [before], ALL) == other


def test_one_topology_more_joins_what_is_measured() -> None:
    before = replace(bench(Row(COPIES, MEASURED, 60, (RESULT,))), topologies=(COPIES,))
    again = gone_on(NEW, [before], (TENSOR,))
    assert (again.topologies, again.todo) == ((COPIES, TENSOR), (TENSOR,))


def test_a_row_takes_the_place_of_its_topologys_earlier_one() -> None:
    rows = with_row((Row(COPIES, REFUSED), Row(TENSOR, FAILED)), Row(COPIES, MEASURED))
    assert [(row.topology, row.state) for row in rows] == [(COPIES, MEASURED), (TENSOR, FAILED)]


def test_the_best_is_named_only_where_two_can_be_compared() -> None:
    slow = replace(RESULT, output_tokens_s=1.0, tpot_ms=1.0)
    two = bench(Row(COPIES, MEASURED, 1, (RESULT,)), Row(TENSOR, MEASURED, 1, (slow,)))
    assert best(two, EIGHT.name, "output_tokens_s") is COPIES
    assert best(two, EIGHT.name, "tpot_ms") is TENSOR
    assert best(bench(Row(COPIES, MEASURED, 1, (RESULT,))), EIGHT.name, "tpot_ms") is None


def test_own_lengths_are_traffic() -> None:
    (found,) = traffic_of(["4000x500"], 64)
    assert (found.input_tokens, found.output_tokens, found.prompts) == (4000, 500, 64)


@pytest.mark.parametrize("word", ["decode-hevy", "0x5", "5x", "x"])
def test_words_that_are_no_traffic_are_an_error(word: str) -> None:
    with pytest.raises(UsageError, match="cannot run traffic"):
        traffic_of([word])
