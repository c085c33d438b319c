"""The main job over a real SSH server: plan, apply, again; check mode; kills; wrong inputs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from bringup.lab.fleet import up
from bringup.lab.process import server_pid
from tests.dynamo.processes import until

from .conftest import ROOT, Lab, tree_digest

PAIR = ("--host", "b300-[04,07]")
SCRIPTS = {"b300-04/serve_dynamo_prefill.sh", "b300-07/serve_dynamo_decode.sh"}

pytestmark = pytest.mark.xdist_group("lab")


def test_two_bare_hosts_become_a_pair_and_the_second_run_changes_nothing(lab: Lab) -> None:
    first = lab.run("provision", *PAIR)
    assert first.returncode == 0, first.stdout + first.stderr
    written = lab.scripts()
    assert set(written) == SCRIPTS
    assert "2 changed (b300-[04,07])" in first.stdout
    second = lab.run("provision", *PAIR)
    assert second.returncode == 0
    assert "2 with nothing to change" in second.stdout
    assert lab.scripts() == written


def test_serve_goes_on_to_start_what_was_written_and_says_that_a_root_forbids_it(lab: Lab) -> None:
    done = lab.run("provision", *PAIR, "--serve", "--no-diff")
    assert done.returncode == 4, "a practice host has scripts, and cannot serve"
    assert set(lab.scripts()) == SCRIPTS
    assert "it lies under root: " in done.stderr
    assert "cannot start" not in done.stderr


def test_serve_starts_nothing_where_provision_did_not_end_well(lab: Lab) -> None:
    done = lab.run("provision", *PAIR, "--serve", "--check")
    assert done.returncode == 5
    assert "not started: kimi-k3; after that: bringup serve.start" in done.stdout
    assert "would be done" not in done.stdout


def test_check_mode_leaves_every_host_as_it_was(lab: Lab) -> None:
    before = {host: tree_digest(lab.root(host)) for host in ("b300-04", "b300-07", "b200-01")}
    done = lab.run("provision", *PAIR, "--check")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "+#!/bin/sh" in done.stdout, "the difference of each script is shown"
    after = {host: tree_digest(lab.root(host)) for host in before}
    assert after == before


def test_a_probe_and_an_unchanged_provision_cost_what_they_should(lab: Lab) -> None:
    lab.run("provision", *PAIR)
    done = lab.run("provision", *PAIR, "--json", "--stats")
    stats = [json.loads(line) for line in done.stdout.splitlines() if '"bringup.stats/1"' in line]
    assert len(stats) == 1
    for cost in stats[0]["hosts"].values():
        assert (cost["connections"], cost["commands"]) == (1, 2)


def test_a_changed_script_is_shown_as_a_difference_and_mended(lab: Lab) -> None:
    lab.run("provision", *PAIR)
    (path,) = lab.root("b300-04").rglob("serve_dynamo_prefill.sh")
    good = path.read_bytes()
    path.write_bytes(good + b"echo tampered\n")
    done = lab.run("provision", *PAIR, "--check")
    assert "-echo tampered" in done.stdout
    assert lab.run("provision", *PAIR).returncode == 0
    assert path.read_bytes() == good


def test_receipts_and_the_log_on_the_host_tell_what_was_done(lab: Lab) -> None:
    lab.run("provision", *PAIR)
    *_, receipt = sorted((lab.state / "receipts" / "b300-04").glob("*.json"))
    document = json.loads(receipt.read_text())
    assert document["schema"] == "bringup.receipt/1"
    assert {step["outcome"] for step in document["steps"]} == {"changed"}
    log = (lab.root("b300-04") / "var/log/bringup.log").read_text()
    assert log.count("\n") == 1
    assert "1 changed" in log


def test_a_saved_plan_is_refused_once_the_host_moved(lab: Lab, tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    one = ("--host", "b300-04")
    assert lab.run("provision", *one, "--check", "--save-plan", str(kept)).returncode == 5
    (lab.root("b300-04") / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n')
    done = lab.run("provision", *one, "--plan", str(kept))
    assert done.returncode == 4
    assert "plan is stale" in done.stderr
    assert not lab.scripts()


def test_a_saved_plan_is_applied_while_nothing_moved(lab: Lab, tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    one = ("--host", "b300-04")
    lab.run("provision", *one, "--check", "--save-plan", str(kept))
    done = lab.run("provision", *one, "--plan", str(kept))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lab.scripts()) == 1


def under_way(lab: Lab, stage: str, *, is_end: bool) -> subprocess.Popen[str]:
    """Begin to provision the pair; return when its first event of a stage has been told."""
    process = subprocess.Popen(
        lab.words("provision", *PAIR, "--json"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in iter(process.stdout.readline, ""):
        event = json.loads(line)
        if (event.get("stage"), event.get("is_end")) == (stage, is_end):
            return process
    raise AssertionError(f"provision ended with {process.wait()} before {stage}")


def spoiled(lab: Lab) -> dict[str, bytes]:
    """Provision the pair and spoil its scripts; return them as they are to be again."""
    lab.run("provision", *PAIR)
    new = lab.scripts()
    for host in ("b300-04", "b300-07"):
        (path,) = lab.root(host).rglob("serve_*.sh")
        path.write_bytes(b"old\n")
    return new


def once_unlocked(lab: Lab) -> subprocess.CompletedProcess[str]:
    """Provision the pair, again for as long as the holders of a killed run's locks live."""
    tried: list[subprocess.CompletedProcess[str]] = []

    def is_let_in() -> bool:
        tried.append(lab.run("provision", *PAIR))
        return "cannot lock" not in tried[-1].stdout + tried[-1].stderr

    until(is_let_in, "locks are let go", every=1)
    return tried[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "is_end"),
    [("probe", False), ("observe", False), ("apply", False), ("apply", True)],
)
def test_killing_the_controller_leaves_old_or_new_and_the_next_run_completes(
    lab: Lab, stage: str, is_end: bool
) -> None:
    new = spoiled(lab)
    with under_way(lab, stage, is_end=is_end) as process:
        process.send_signal(signal.SIGKILL)
    assert all(content in (b"old\n", new[name]) for name, content in lab.scripts().items())
    done = once_unlocked(lab)
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.scripts() == new
    assert not [p for p in lab.folder.glob("hosts/*/root/**/.*bringup*") if p.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "is_end"), [("probe", False), ("apply", False)])
def test_killing_the_server_leaves_old_or_new_and_the_next_run_completes(
    lab: Lab, stage: str, is_end: bool
) -> None:
    new = spoiled(lab)
    with under_way(lab, stage, is_end=is_end) as process:
        pid = server_pid(lab.folder)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=300)
    assert process.returncode in (0, 1, 3)
    assert all(content in (b"old\n", new[name]) for name, content in lab.scripts().items())
    up(lab.folder)
    assert lab.run("provision", *PAIR).returncode == 0
    assert lab.scripts() == new
