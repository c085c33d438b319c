"""Laws of the script of all probes, run on practice hosts' folders."""

from __future__ import annotations

import os
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bringup.core.facts import Facts
from bringup.core.reading import Known, Unknown
from bringup.core.script import compose
from bringup.probes import ALL
from bringup.probes.gpu import Gpus
from bringup.probes.topology import Topology

from .practice import host, run

SHELLS = ["dash", "bash", "busybox sh"]
STEADY = [probe for probe in ALL if not probe.volatile]


def steady(facts: Facts) -> dict[str, Any]:  # Any: readings of every type
    """Return readings that may not change from one run to the next, by name."""
    return {probe.name: facts[probe.fact] for probe in STEADY}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("practice")


@pytest.fixture(scope="module")
def b300(folder: Path) -> Path:
    return host(folder, "b300-04")


def test_the_script_fits_one_argument() -> None:
    assert len(compose((probe.ask for probe in ALL), nonce="n" * 32).encode()) < 100 * 1024


def test_every_section_ends_and_says_nothing_outside(b300: Path) -> None:
    done = run(b300)
    assert done.answer.complete
    assert not done.stderr
    assert [s.name for s in done.answer.sections.values() if s.exit is None] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_all_shells_read_the_same(b300: Path, shell: str) -> None:
    assert steady(run(b300, shell=shell).facts) == steady(run(b300).facts)


def test_eight_gpus_cost_less_than_three_seconds_of_work(b300: Path) -> None:
    """Work is what the processor did: the clock on the wall depends on the neighbours."""

    def work() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert isinstance(run(b300).facts[Gpus], Known)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)

    assert any(work() < 3 for _ in range(3)), "neighbours on the processor make work longer, too"


def test_it_writes_nothing(b300: Path) -> None:
    def seen() -> list[tuple[str, int]]:
        return sorted((str(p), os.lstat(p).st_mtime_ns) for p in b300.rglob("*"))

    before = seen()
    run(b300)
    assert seen() == before


LIMIT_S = 2
SHORT = [replace(p, seconds=LIMIT_S) if p.tool == "nvidia-smi" else p for p in ALL]


@pytest.mark.slow
def test_a_tool_that_hangs_costs_its_limit_once_and_nothing_else(folder: Path, b300: Path) -> None:
    well = run(b300)
    sick = run(host(folder / "sick", "b300-04", hang=("nvidia-smi",)), probes=SHORT)
    waited = [sick.answer[probe.name].trouble for probe in SHORT if probe.tool == "nvidia-smi"]
    assert waited.count("timed out") == 1
    assert all("did not answer" in trouble for trouble in waited if trouble != "timed out"), waited
    for fact in (Gpus, Topology):
        reading = sick.facts[fact]
        assert isinstance(reading, Unknown)
        assert "timed out" in reading.why or "did not answer" in reading.why
    of_gpus = {"gpus", "topology", "proof", "cuda"}
    healthy, ill = steady(well.facts), steady(sick.facts)
    assert {n: r for n, r in ill.items() if n not in of_gpus} == {
        n: r for n, r in healthy.items() if n not in of_gpus
    }


@pytest.mark.parametrize("name", ["b300-04", "b300-13", "b200-01"])
def test_no_section_of_a_practice_host_is_misread(folder: Path, name: str) -> None:
    """Unknown is for what could not be asked; a host that answers gives no parser's complaint."""
    facts = run(host(folder / "all", name)).facts
    complaints = {
        probe.name: reading.why
        for probe in ALL
        if isinstance(reading := facts[probe.fact], Unknown) and "cannot be read" in reading.why
    }
    assert set(complaints) <= {"addresses"}, complaints
