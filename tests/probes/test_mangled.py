"""Whatever a host says, parsers answer in one of three ways, and never make good out of bad."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bringup.core.facts import Probe, read
from bringup.core.host import Host, Login
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.rules import Status, World, judge
from bringup.core.script import Answer, Section
from bringup.probes import ALL
from bringup.probes.evidence import Output, asked, facts_of
from bringup.probes.evidence.world import outputs_of, world_of
from bringup.rules import CHECKS

from ..shipped import KINDS
from .practice import host, run

CASES = Path(__file__).parent.parent / "cases"
FEW = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HOST = Host("mangled", Login("mangled"))

NOISE = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=400)
CODES = st.sampled_from([0, 1, 2, 5, 9, 18, 134, 139, 255])


@cache
def sections() -> dict[str, Section]:
    """Return what a practice host with every tool answers, by section."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return dict(run(host(Path(folder), "b300-13")).answer.sections)


@cache
def commands() -> list[tuple[str, Output]]:
    """Return every command of every known case, with its output."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted(CASES.glob("*.yaml"))]
    return [pair for doc in documents for pair in outputs_of(doc["facts"]).items()]


@st.composite
def mangled(draw: st.DrawFn, text: str) -> str:
    """Cut, drop, double, shuffle and smear a text."""
    lines = text.split("\n")
    how = draw(st.sampled_from(["cut", "drop", "double", "shuffle", "smear", "swap", "spaces"]))
    place = draw(st.integers(0, max(0, len(lines) - 1)))
    if how == "cut":
        return text[: draw(st.integers(0, len(text)))]
    if how == "drop":
        return "\n".join(lines[:place] + lines[place + draw(st.integers(1, 9)) :])
    if how == "double":
        return "\n".join([*lines[: place + 1], *lines[place:]])
    if how == "shuffle":
        order = draw(st.permutations(range(min(len(lines), 30))))
        return "\n".join([lines[i] for i in order] + lines[30:])
    if how == "smear":
        noise = draw(st.sampled_from(["\0", "\x1b[0m", "�", "[N/A]", "ERR!", "\r", "é"]))
        return "\n".join([*lines[:place], lines[place] + noise, *lines[place + 1 :]])
    if how == "swap":
        return text.replace(draw(st.sampled_from([":", " ", "\t", ",", "0", "="])), "")
    return text.replace(" ", "  ")


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
@FEW
@given(text=NOISE, code=CODES)
def test_noise_is_never_absent(probe: Probe[object], text: str, code: int) -> None:
    assert not isinstance(probe.parse(Section(probe.name, code, text)), Absent)


@FEW
@given(text=NOISE, code=CODES)
def test_no_check_passes_on_noise(text: str, code: int) -> None:
    answer = Answer({p.name: Section(p.name, code, text) for p in ALL}, complete=True)
    found = judge(CHECKS, World(HOST, read(ALL, answer)))
    assert [f for f in found if f.status is Status.PASS] == []


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
@FEW
@given(data=st.data())
def test_a_mangled_answer_gives_one_of_three_answers(
    probe: Probe[object], data: st.DataObject
) -> None:
    section = sections()[probe.name]
    text = data.draw(mangled(section.text))
    reading = probe.parse(Section(probe.name, section.exit, text))
    assert isinstance(reading, Known | Absent | Unknown)


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
@FEW
@given(data=st.data())
def test_an_answer_that_was_cut_off_is_unknown(probe: Probe[object], data: st.DataObject) -> None:
    section = sections()[probe.name]
    cut = section.text[: data.draw(st.integers(0, len(section.text)))]
    facts = read([probe], Answer({probe.name: Section(probe.name, None, cut)}, complete=False))
    assert isinstance(facts[probe.fact], Unknown)


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_mangled_outputs_of_any_command_are_judged_without_an_error(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(commands()), min_size=1, max_size=4))
    outputs = {
        line: Output(
            data.draw(st.sampled_from([output.code, 0, 1, 124, 127])),
            data.draw(mangled(output.stdout)),
            data.draw(mangled(output.stderr)),
        )
        for line, output in chosen
    }
    facts = {line: {"rc": o.code, "stdout": o.stdout, "stderr": o.stderr}
             for line, o in outputs.items()}  # fmt: skip
    target = data.draw(st.sampled_from([None, {"engine": "vllm", "parallel": "TP=8"}]))
    judge(CHECKS, world_of(facts, target, KINDS))


@settings(max_examples=250, deadline=None)
@given(data=st.data(), noise=NOISE)
def test_noise_from_any_command_proves_nothing(data: st.DataObject, noise: str) -> None:
    """A program that prints noise and succeeds has shown neither a thing nor its absence."""
    line, _ = data.draw(st.sampled_from(commands()))
    readings = facts_of({line: Output(0, f"~{noise}~\n")}).readings
    surely = [fact.__name__ for fact, reading in readings.items() if isinstance(reading, Absent)]
    assert surely == []


@settings(max_examples=200, deadline=None)
@given(line=st.text(max_size=80))
def test_any_command_line_can_be_taken_apart(line: str) -> None:
    asked(line)
