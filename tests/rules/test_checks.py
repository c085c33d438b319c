"""Laws of all checks together."""

from __future__ import annotations

import re

import pytest

from bringup.core.facts import Facts
from bringup.core.host import Host, Login
from bringup.core.rules import Level, Row, Status, Verdict, World, judge, verdict
from bringup.rules import CHECKS, OPT_IN

GROUPS = {
    "GPU": 23, "JIT": 7, "FAB": 9, "TIM": 2, "SEC": 6, "IB": 16, "CTR": 9, "STO": 7, "OS": 10,
    "NET": 11, "ENG": 5, "SLU": 6,
}  # fmt: skip
NOTHING = World(Host("bare", Login("bare")), Facts())


def test_each_check_has_an_id_of_its_own() -> None:
    ids = [row.id for row in (*CHECKS, *OPT_IN)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("group", GROUPS)
def test_every_check_of_a_group_is_there(group: str) -> None:
    have = {row.id for row in (*CHECKS, *OPT_IN) if row.id.startswith(group)}
    assert have == {f"{group}-{number:02}" for number in range(1, GROUPS[group] + 1)}


@pytest.mark.parametrize("row", [*CHECKS, *OPT_IN], ids=lambda row: row.id)
def test_a_check_says_why_and_where_from(row: Row[World]) -> None:
    assert row.reason
    assert re.match(r"https://|docs/|K3 report|2×B200 report", row.source)


@pytest.mark.parametrize("row", [*CHECKS, *OPT_IN], ids=lambda row: row.id)
def test_a_host_of_which_nothing_is_known_neither_passes_nor_fails(row: Row[World]) -> None:
    for finding in judge([row], NOTHING):
        assert finding.status in (Status.UNKNOWN, Status.SKIP), finding
        assert finding.level in (Level.NOTE, Level.OK), finding


def test_a_host_of_which_nothing_is_known_is_not_ready() -> None:
    assert verdict(judge(CHECKS, NOTHING)) is Verdict.UNKNOWN
