"""Logs as the field brings them: other spellings, noise, consequences, and what carries a log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from bringup.edge.catalogue import failures
from bringup.engines.explain import explain
from bringup.flow.diagnose import diagnose_text
from bringup.readiness.failures import Failure, Match, diagnose

FIELD = Path(__file__).parent / "field"
SAMPLES = Path(__file__).parent / "samples"
CASES: dict[str, dict[str, Any]] = yaml.safe_load((FIELD / "field.yml").read_text())
NAMED = sorted(name for name, wanted in CASES.items() if wanted["cause"])
HARMLESS = sorted(set(CASES) - set(NAMED))


@cache
def log(name: str) -> str:
    return (FIELD / f"{name}.log").read_text()


@cache
def found(name: str) -> tuple[Match, ...]:
    return diagnose(failures(), log(name))


def test_every_log_says_what_it_is_to_be_told_as() -> None:
    assert {path.stem for path in FIELD.glob("*.log")} == set(CASES)


@pytest.mark.parametrize("name", NAMED)
def test_the_first_cause_is_the_root(name: str) -> None:
    assert [match.failure.id for match in found(name)][:1] == [CASES[name]["cause"]]


@pytest.mark.parametrize("name", [name for name in NAMED if "certain" in CASES[name]])
def test_the_root_is_as_certain_as_its_words(name: str) -> None:
    assert found(name)[0].is_certain == CASES[name]["certain"]


@pytest.mark.parametrize("name", NAMED)
def test_nothing_is_left_to_fill_in_what_the_line_has_told(name: str) -> None:
    first = found(name)[0]
    groups = {group for pattern in first.failure.says for group in pattern.groupindex}
    words = {group.upper() for group in groups} - {"PATH", "WHY"}
    assert not words & set(re.findall(r"[A-Z]+", first.command)), first.command


@pytest.mark.parametrize("name", HARMLESS)
def test_nothing_certain_is_said_of_what_is_harmless(name: str) -> None:
    assert not [match.failure.id for match in found(name) if match.is_certain]


def as_docker_keeps_it(text: str) -> str:
    return "".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-20T02:31:40.1Z"})
        + "\n"
        for line in text.splitlines()
    )


def before(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


CARRIED = {
    "docker's JSON": as_docker_keeps_it,
    "docker logs -t": before("2026-11-20T02:31:40.113456789Z "),
    "journald": before("Nov 20 02:31:40 b300-04 kimi-k3-decode[4711]: "),
    "kubectl": before("[pod/frontend-7d9c/main] "),
    "compose": before("decode-1  | "),
    "coloured": lambda text: f"\x1b[31m{text}\x1b[0m",
    "after a good start": lambda text: (SAMPLES / "healthy-sglang.log").read_text() + text,
    "before the loud end": lambda text: text + (SAMPLES / "scheduler-died.log").read_text(),
}


@pytest.mark.parametrize("carried", CARRIED.values(), ids=CARRIED)
@pytest.mark.parametrize("name", NAMED)
def test_what_carries_a_log_does_not_hide_its_cause(
    name: str, carried: Callable[[str], str]
) -> None:
    first = diagnose(failures(), carried(log(name)))[0]
    assert (first.failure.id, first.is_certain) == (CASES[name]["cause"], found(name)[0].is_certain)


@pytest.mark.parametrize("carried", CARRIED.values(), ids=CARRIED)
@pytest.mark.parametrize("path", sorted(SAMPLES.glob("healthy-*.log")), ids=lambda path: path.stem)
def test_what_carries_a_healthy_log_makes_it_no_other(
    path: Path, carried: Callable[[str], str]
) -> None:
    told = diagnose(failures(), carried(path.read_text()))
    assert not [match.failure.id for match in told if match.is_certain]


SERVING = [name for name in HARMLESS if re.search(r"startup complete|ready to roll", log(name))]


@pytest.mark.parametrize("name", [name for name in SERVING if name != "restarted-then-well"])
def test_a_log_that_ends_well_is_told_as_well(name: str) -> None:
    told = diagnose_text(name, log(name))
    assert (told.is_well, told.said) == (True, ())
    assert told.stands.startswith("came up: ")


def test_a_fault_after_a_good_start_is_not_told_as_well() -> None:
    told = diagnose_text("x", log("healthy-flashinfer-autotune") + "OddError: the flux is low\n")
    assert not told.is_well
    assert "OddError: the flux is low" in told.said


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.id)
def test_what_a_row_wants_explained_can_be_explained(failure: Failure) -> None:
    for name in re.findall(r"bringup explain ([a-z][\w-]*)", failure.command):
        assert explain(name).lines
