"""A saved plan is for one host, and for the text that was read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup.core.errors import UsageError
from bringup.core.outcome import Ended
from bringup.core.plan import Plan
from bringup.flow.plan import keep, load, meant
from tests.e2e.conftest import Lab

pytestmark = pytest.mark.xdist_group("lab")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    plan = Plan("b200-01", "0", "inventory", "sha256:0", (), (), ())
    keep(str(tmp_path / "plan.json"), (Ended("b200-01", plan),))
    return tmp_path / "plan.json"


def test_a_plan_is_refused_on_another_host(saved: Path) -> None:
    with pytest.raises(UsageError, match="the plan is for b200-01"):
        meant(load(str(saved)), str(saved), ("b300-04",))


def test_a_plan_of_which_the_text_was_edited_is_refused(saved: Path) -> None:
    document = json.loads(saved.read_text())
    saved.write_text(json.dumps(document | {"verdict": "ready, trust me"}))
    with pytest.raises(UsageError, match="its text was edited"):
        load(str(saved))


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"{", "it is no JSON at line 1"), (b"\xff\xfe", "it is no UTF-8 text")],
)
def test_a_file_that_is_no_plan_is_told_in_words(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(UsageError, match=told) as raised:
        load(str(tmp_path / "plan.json"))
    assert raised.value.remedy


def test_a_plan_alone_says_which_host_is_meant(lab: Lab) -> None:
    plan = str(lab.folder / "plan.json")
    made = lab.run("provision", "--host", "b200-01", "--check", "--save-plan", plan)
    assert made.returncode == 5, made.stdout + made.stderr
    done = lab.run("provision", "--plan", plan)
    assert done.returncode == 0, done.stdout + done.stderr
    other = lab.run("provision", "--plan", plan, "--host", "b300-04")
    assert other.returncode == 2
    assert "the plan is for b200-01" in other.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("serve.start", "--accept", "FOO-1"), "no such check forbids a start"),
        (("serve.logs", "--lines", "-5"), "cannot show -5 lines"),
        (("ready", "--budget", "listed=-5"), "should be a number above 0"),
        (("provision", "--host", "b200-01", "--set", "advertise_host=not a host"), "should be"),
        (("provision", "--host", "b200-01", "--set", "hicache_ratio=abc"), "should be a number"),
        (("serve.start", "--deployment", "kimi-k3"), "it lies under root: "),
    ],
)
def test_a_slip_of_the_pen_is_refused_with_what_to_do(
    lab: Lab, words: tuple[str, ...], told: str
) -> None:
    more = ("--deployment", "kimi-k3") if words[0] in ("serve.logs", "ready") else ()
    done = lab.run(*words, *more)
    assert done.returncode in (2, 4)
    assert told in done.stderr
    assert "\n  do " in done.stderr
