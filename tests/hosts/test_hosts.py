"""Every folder here is a captured host; it replays to the same facts and the same verdict.

To add one: ``bringup probe.capture --host HOST``, put the file here as NAME/probe.txt, run
``pytest --update-golden`` and review what golden/NAME.txt says. Captures of the practice fleet say
in their heading that they are synthetic.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bringup.core.capture import read_capture, replayed
from bringup.core.facts import Facts
from bringup.core.host import Host, Login
from bringup.core.kinds import kind_for
from bringup.core.masking import mask
from bringup.core.probed import Probed, fact_rows, matters
from bringup.core.reading import value_of
from bringup.core.rules import World, judge
from bringup.edge.inventory import load
from bringup.probes.gpu import Gpus
from bringup.probes.scope import every
from bringup.rules import CHECKS
from tests.conftest import ROOT, Golden

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/probe.txt"))
KINDS = load(ROOT / "inventory").kinds


def text_of(name: str) -> str:
    return (HERE / name / "probe.txt").read_text()


def facts_of(text: str) -> Facts:
    return replayed(read_capture(text), every())


def probed(name: str) -> Probed:
    facts = facts_of(text_of(name))
    host = Host(name, Login("192.0.2.1"))
    gpus = value_of(facts[Gpus])
    kind = kind_for(KINDS, gpus.gpus if gpus else (), host)
    findings = judge(CHECKS, World(host, facts, kind), host=name)
    return Probed(name, findings, facts, kind.name if kind else "")


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_replays_to_its_verdict(name: str, golden: Golden) -> None:
    one = probed(name)
    lines = [f"kind {one.kind or 'not known'}", f"verdict {one.verdict.value}", ""]
    for finding in filter(matters, one.findings):
        lines.append(f"{finding.level.value} {finding.status.value} {finding.id}")
        lines += [f"  {line}" for line in finding.evidence]
    lines += ["", *(f"{row.state} {row.name}: {row.text}" for row in fact_rows([one]))]
    golden(f"{name}.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_holds_nothing_that_masking_would_take(name: str) -> None:
    text = text_of(name)
    assert mask(text) == text


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_says_what_made_it(name: str) -> None:
    capture = read_capture(text_of(name))
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", capture.tool)
    assert capture.about
    assert capture.answer.complete


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_half_a_capture_is_never_ready_for_what_it_lost(name: str, share: float) -> None:
    """A cut answer may lose facts; it never gains any that the whole one does not have."""
    whole, cut = facts_of(text_of(name)), facts_of(text_of(name)[: int(len(text_of(name)) * share)])
    gained = [
        kind.__name__
        for kind, reading in cut.readings.items()
        if value_of(reading) is not None and reading != whole.readings.get(kind)
    ]
    assert gained == []
