"""Real faults from public reports: each file gives what commands printed and what is true of it.

`facts` maps a command to its output: a text alone stands for exit code 0. `findings` are the checks
that must come out so; others may say what they like, as long as the verdict holds.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from bringup.core.rules import Finding, Level, Status, judge, verdict
from bringup.flow.cases import case_world
from bringup.rules import CHECKS

from ..shipped import KINDS

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def case(name: str) -> dict[str, Any]:  # Any: a document of several types
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return loaded


@cache
def findings(name: str) -> dict[str, Finding]:
    world = case_world(case(name)["facts"], case(name).get("target"), KINDS)
    return {finding.id: finding for finding in judge(CHECKS, world)}


def told(name: str) -> str:
    """Return what was found, for the reader of a failed test."""
    loud = [f for f in findings(name).values() if f.level in (Level.WARN, Level.BLOCK)]
    return "\n".join(f"{f.id} {f.status.value} {f.level.value} {f.evidence}" for f in loud)


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_right(name: str) -> None:
    assert verdict(findings(name).values()).value == case(name)["verdict"], told(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_findings_are_right(name: str) -> None:
    wanted = case(name)["findings"]
    assert {id_: findings(name)[id_].status.value for id_ in wanted} == wanted, told(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_comes_with_a_line_that_shows_it_and_a_remedy(name: str) -> None:
    for finding in findings(name).values():
        if finding.status in (Status.FAIL, Status.WARN):
            assert finding.evidence, finding
            assert finding.remedy, finding


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_that_nobody_looked_at(name: str) -> None:
    """Each command that is left out leaves fewer findings, never other ones that pass."""
    whole = findings(name)
    for left in case(name)["facts"]:
        facts = {line: told for line, told in case(name)["facts"].items() if line != left}
        world = case_world(facts, case(name).get("target"), KINDS)
        for finding in judge(CHECKS, world):
            before = whole[finding.id].status
            if before is Status.UNKNOWN:
                assert finding.status is not Status.PASS, (left, finding)


def on_a_terminal(told: object) -> object:
    """Return an output as a terminal's log keeps it: carriage returns, and colours at each end."""
    if isinstance(told, str):
        lines = told.split("\n")
        return "\r\n".join(f"\x1b[0m{line}\x1b[K" if line else "" for line in lines)
    if isinstance(told, dict):
        return {key: on_a_terminal(value) for key, value in told.items()}
    return told


@pytest.mark.parametrize("name", NAMES)
def test_carriage_returns_and_colours_change_nothing(name: str) -> None:
    facts = {line: on_a_terminal(told) for line, told in case(name)["facts"].items()}
    world = case_world(facts, case(name).get("target"), KINDS)
    found = {finding.id: finding.status for finding in judge(CHECKS, world)}
    assert found == {id_: finding.status for id_, finding in findings(name).items()}
