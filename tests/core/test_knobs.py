"""Knobs: precedence, merging, and conflicts that name both sides."""

from __future__ import annotations

from itertools import permutations

import pytest

from bringup.core.errors import UsageError
from bringup.core.knobs import Knob, Opinion, Rank, largest, settle

KNOBS = {
    "ready": Knob("ready", int, 600, "how long to wait", "s", largest),
    "backend": Knob("backend", str, None, "attention"),
}


def opinion(knob: str, value: str | int, rank: Rank, by: str) -> Opinion:
    return Opinion(knob, value, rank, by)


def test_an_unset_knob_without_default_stays_out() -> None:
    assert set(settle(KNOBS, [])) == {"ready"}


def test_order_of_opinions_never_matters() -> None:
    said = [
        opinion("ready", 1800, Rank.RULE, "rule a"),
        opinion("ready", 3600, Rank.RULE, "rule b"),
        opinion("ready", 900, Rank.KIND, "kind c"),
    ]
    results = {repr(settle(KNOBS, order)) for order in permutations(said)}
    assert len(results) == 1


def test_the_largest_budget_wins_within_a_rank() -> None:
    said = [opinion("ready", v, Rank.RULE, f"rule {v}") for v in (1800, 3600)]
    decided = settle(KNOBS, said)["ready"]
    assert (decided.value, decided.by) == (3600, "rule 3600")


def test_a_higher_rank_overrules_and_the_loser_is_named() -> None:
    said = [
        opinion("backend", "triton", Rank.RULE, "rule r"),
        opinion("backend", "flashinfer", Rank.HOST, "inventory, host h"),
    ]
    decided = settle(KNOBS, said)["backend"]
    assert decided.value == "flashinfer"
    assert [o.by for o in decided.overruled] == ["rule r"]


def test_two_that_must_agree_and_do_not_are_both_named() -> None:
    said = [
        opinion("backend", "triton", Rank.RULE, "rule one"),
        opinion("backend", "flashinfer", Rank.RULE, "rule two"),
    ]
    with pytest.raises(UsageError, match=r"rule one says 'triton', rule two says 'flashinfer'"):
        settle(KNOBS, said)


def test_a_conflict_below_the_winning_rank_is_no_error() -> None:
    said = [
        opinion("backend", "triton", Rank.RULE, "rule one"),
        opinion("backend", "flashinfer", Rank.RULE, "rule two"),
        opinion("backend", "fa4", Rank.OPERATOR, "operator"),
    ]
    assert settle(KNOBS, said)["backend"].value == "fa4"


def test_an_unknown_knob_is_refused() -> None:
    with pytest.raises(UsageError, match="no such knob"):
        settle(KNOBS, [opinion("bakend", "x", Rank.RULE, "rule r")])
