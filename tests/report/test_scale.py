"""A hundred hosts: one screen for people, one object each for machines as soon as it is there."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console, RenderableType

from bringup import verbs
from bringup.core.errors import Exit, Unreachable, alike
from bringup.core.fixes import Fix, Risk
from bringup.core.knobs import Decision
from bringup.core.outcome import Ended
from bringup.core.plan import Plan, plan_steps
from bringup.core.probed import Probed
from bringup.core.receipt import Done, Outcome, Receipt
from bringup.core.remote import Traffic
from bringup.core.rules import Finding, Level, Status
from bringup.core.steps import Observation, State
from bringup.report.error import errors_view
from bringup.report.fix import fixes_view
from bringup.report.probe import probe_view
from bringup.report.provision import ended_document, run_view, summary_view
from bringup.report.screen import JsonScreen
from bringup.report.stats import stats_view
from bringup.report.summary import summary_document
from bringup.report.summary import summary_view as count_view
from bringup.report.weights import checks_view
from bringup.steps.file import text_file
from bringup.weights.compare import Fault
from bringup.weights.folder import Folder

SCREEN_LINES = 40
HOSTS = [f"b300-{n:03}" for n in range(1, 101)]


def lines_of(view: RenderableType) -> list[str]:
    out = StringIO()
    Console(file=out, width=100, highlight=False).print(view, crop=False)
    return out.getvalue().splitlines()


def refused(host: str) -> Unreachable:
    number = HOSTS.index(host)
    return Unreachable(
        f"cannot reach {host} at 198.18.0.{number} port 22: connection refused", host=host,
        remedy="see that sshd runs there",
    )  # fmt: skip


def planned(host: str, *, text: str = "echo serve\n", found: str = "absent") -> Ended:
    """Return a host whose script names the host and its address, as real ones do."""
    address = f"198.18.0.{HOSTS.index(host)}"
    step = text_file(f"/opt/{host}/serve.sh", f"# {host} at {address}\n{text}")
    seen = {step.id: Observation(State.CHANGE, found, why="found absent")}
    decision = Decision("advertise_host", address, "inventory", f"address of {host}")
    return Ended(host, Plan(host, "1", "inv", "f", (), (decision,), plan_steps((step,), seen)))


def test_errors_that_differ_in_host_address_and_count_are_one() -> None:
    (group,) = alike(refused(host) for host in HOSTS)
    assert len(group) == 100
    shown = lines_of(errors_view(group))
    assert len(shown) <= 4
    assert any("also" in line and "b300-[002-100]" in line for line in shown)


def test_errors_of_two_kinds_are_two() -> None:
    other = Unreachable("cannot trust b300-001: its host key has changed", host="b300-001")
    assert len(alike([refused("b300-001"), other, refused("b300-002")])) == 2


def test_a_hundred_hosts_that_were_not_seen_are_few_lines() -> None:
    probed = [Probed(host, error=refused(host)) for host in HOSTS]
    assert len(lines_of(probe_view(probed))) < SCREEN_LINES


def test_plans_that_differ_in_name_and_address_are_shown_once() -> None:
    shown = lines_of(run_view([planned(host) for host in HOSTS], diff=True))
    assert len(shown) < SCREEN_LINES
    assert sum("+echo serve" in line for line in shown) == 1
    assert any("b300-[001-100]  shown for b300-001" in line for line in shown)


def test_a_plan_that_differs_in_substance_is_shown_in_full() -> None:
    odd = planned("b300-050", text="echo other\n")
    every = [odd if host == "b300-050" else planned(host) for host in HOSTS]
    shown = lines_of(run_view(every, diff=True))
    assert sum("+echo other" in line for line in shown) == 1
    assert sum("+echo serve" in line for line in shown) == 1


def test_values_that_all_hosts_have_of_their_own_are_cut_short() -> None:
    shown = lines_of(run_view([planned(host) for host in HOSTS], diff=False))
    assert sum("198.18.0." in line for line in shown) <= 3
    assert any("b300-[004-100]: 97 other values" in line for line in shown)


def test_the_last_line_counts_hosts_by_outcome() -> None:
    ended = [planned("b300-001"), Ended("b300-002", error=refused("b300-002"))]
    text = " ".join(lines_of(summary_view(ended, check=True)))
    assert "1 would change (b300-001); 1 failed (b300-002)" in text
    assert str(count_view({"ready": 99, "blocked": 1})) == "100 hosts: 99 ready, 1 blocked"


def test_every_object_is_out_before_the_next_host_ends() -> None:
    out = StringIO()
    screen = JsonScreen(out)
    for number, host in enumerate(HOSTS, 1):
        screen.emit(ended_document(planned(host)))
        assert len(out.getvalue().splitlines()) == number
    screen.emit(summary_document({"would change": 100}, Exit.WOULD_CHANGE))
    objects = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [one["host"] for one in objects[:-1]] == HOSTS
    assert objects[-1] == {
        "schema": "bringup.summary/1", "counts": {"would change": 100}, "exit": 5,
    }  # fmt: skip


def test_costs_of_a_hundred_hosts_take_a_row_for_each_kind() -> None:
    costs = {host: Traffic(1, 1, 30_000 + n, 140_000, 5) for n, host in enumerate(HOSTS)}
    costs["b300-007"] = Traffic(2, 1, 9, 0, 10)
    text = lines_of(stats_view(costs))
    assert len(text) == 3
    assert "b300-[001-006,008-100]" in text[1]
    assert "30,000–30,099 B" in text[1]
    assert text[2].split()[:4] == ["b300-007", "2", "1", "10"]


def mended(host: str, *, left: str = "FAB-05") -> Ended:
    """Return a host that two fixes were done on, of which one has yet to count."""
    titles = {"CTR-01": "install an engine", "OS-02": "let logins lock memory", left: "a fabric"}
    found = {
        id_: Finding(id_, title, Status.FAIL, Level.BLOCK, host, (f"{id_} is bad",), "", "", "")
        for id_, title in titles.items()
    }
    steps = tuple(Done(f"file:/etc/{n}", Outcome.CHANGED, HOSTS.index(host) / 10) for n in range(9))
    receipt = Receipt(host, "p", "me", "then", "later", steps)
    before = Plan(host, "1", "inv", "f", tuple(found.values()), (), ())
    now = replace(before, findings=(found["OS-02"], found[left]))
    fixes = (
        Fix(found["CTR-01"], titles["CTR-01"], Risk.SAFE, steps=ONE),
        Fix(found["OS-02"], titles["OS-02"], Risk.SAFE, "from the next login on", steps=ONE),
        Fix(found[left], "", Risk.DRAIN, withheld="no", commands=(f"bringup probe --host {host}",)),
    )
    round_ = Ended(host, before, receipt, f"state/{host}/20260101T0000{HOSTS.index(host):02}Z.json")
    return Ended(host, now, fixes=fixes, rounds=(round_,))


ONE = (text_file("/etc/one", "1\n"),)


def test_fixes_of_a_hundred_hosts_are_told_once() -> None:
    shown = lines_of(fixes_view([mended(host) for host in HOSTS], check=False))
    assert len(shown) < SCREEN_LINES
    assert any("b300-[001-100]  shown for b300-001" in line for line in shown)


def test_a_host_that_is_left_with_something_else_is_told_by_itself() -> None:
    every = [mended(host, left="GPU-09" if host == "b300-050" else "FAB-05") for host in HOSTS]
    shown = lines_of(fixes_view(every, check=False))
    assert [line for line in shown if line.strip() == "b300-050"]
    assert any("b300-[001-049,051-100]" in line for line in shown)


def test_fixes_tell_what_is_mended_and_what_still_stands() -> None:
    shown = lines_of(fixes_view([mended("b300-001")], check=False))
    assert "  mended       CTR-01" in shown
    assert "  still there  OS-02  OS-02 is bad  (from the next login on)" in shown


def test_folders_of_a_hundred_hosts_that_are_alike_take_a_line() -> None:
    whole = Folder("/raid/m", index="m.index.json")
    cut = (Fault("m-1.safetensors", "is 7 bytes short"),)
    checks = [(f"{host}:/raid/m", whole, (), "") for host in HOSTS if host != "b300-050"]
    views = [*checks_view([*checks, ("b300-050:/raid/m", whole, cut, "")])]
    shown = [line for view in views for line in lines_of(view)]
    assert len(shown) == 3
    assert shown[0].startswith("whole  b300-[001-049,051-100]:/raid/m")
    assert shown[1].startswith("not whole  b300-050:/raid/m")


def test_no_verb_tells_errors_one_by_one() -> None:
    """Errors that differ only in their host are told once, where they are told together."""
    for path in Path(verbs.__file__).parent.glob("*.py"):
        for loop in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.For)):
            calls = (n.func for n in ast.walk(loop) if isinstance(n, ast.Call))
            told = [f.attr for f in calls if isinstance(f, ast.Attribute)]
            assert "fail" not in told, f"{path.name}:{loop.lineno}"
