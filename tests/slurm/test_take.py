"""Taking a host from Slurm and giving it back, under the real one and under a stand-in."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bringup.core.errors import Blocked
from bringup.core.event import Event
from bringup.edge.ssh import SshFleet, SshOptions
from bringup.edge.store import Store
from bringup.flow.slurm import Held, give, take
from bringup.flow.types import Tools
from bringup.flow.undo import undo
from bringup.options.slurm import Taking
from tests.fleet.yard import Yard
from tests.weights.hands import NoRenderer

from .cluster import Cluster, await_gone, await_text

pytestmark = [pytest.mark.root, pytest.mark.slow]

QUICK = Taking(wait_s=600)


@contextmanager
def tools_of(
    cluster: Cluster, yard: Yard, tmp_path: Path, events: list[Event] | None = None
) -> Iterator[Tools]:
    host = cluster.host.host()
    options = SshOptions(known_hosts=yard.known_hosts, use_ssh_config=False)
    told = events if events is not None else []
    count = iter(range(1000))
    with SshFleet({host.name: host}, options) as fleet:
        yield Tools(
            fleet, NoRenderer(), Store(tmp_path / "state"),
            lambda: f"2026-01-13T08:00:{next(count):02}Z", lambda: "nonce", "me", "0", told.append,
        )  # fmt: skip


@pytest.mark.parametrize(("drain", "flag"), [(False, "RESERVED"), (True, "DRAIN")])
def test_a_free_host_is_taken_and_given_back(
    cluster: Cluster, yard: Yard, tmp_path: Path, drain: bool, flag: str
) -> None:
    host = cluster.host.host()
    with tools_of(cluster, yard, tmp_path) as tools:
        wish = Taking(drain=drain, wait_s=600, reason="ticket 4711")
        (held,) = take(tools, [host], wish, poll_s=0.3)
        assert held.error is None
        await_text(cluster.node, flag)
        (again,) = take(tools, [host], wish, poll_s=0.3)
        assert (again.changes, again.error) == ((), None)
        (given,) = give(tools, [host])
        assert len(given.changes) == 1
        await_gone(cluster.node, flag)
        assert give(tools, [host])[0].changes == ()


def test_jobs_are_waited_for_and_named(cluster: Cluster, yard: Yard, tmp_path: Path) -> None:
    job, events, host = cluster.submit(600), list[Event](), cluster.host.host()
    with tools_of(cluster, yard, tmp_path, events) as tools:
        rows: list[Held] = []
        thread = threading.Thread(
            target=lambda: rows.extend(take(tools, [host], QUICK, poll_s=0.3))
        )
        thread.start()
        said = await_text(lambda: " ".join(e.text for e in events if e.stage == "wait"), "left:")
        assert re.search(rf"job {job} of operator \(train, at most (9|10) min more\)", said), said
        cluster.cancel(job)
        thread.join(300)
    assert rows[0].error is None
    assert "RESERVED" in await_text(cluster.node, "RESERVED")


def test_a_wait_that_is_over_gives_the_host_back(
    cluster: Cluster, yard: Yard, tmp_path: Path
) -> None:
    cluster.submit(600)
    with tools_of(cluster, yard, tmp_path) as tools:
        (late,) = take(tools, [cluster.host.host()], Taking(wait_s=1), poll_s=0.2)
        assert isinstance(late.error, Blocked)
        assert "1 job still runs; it was given back" in late.error.message
        await_gone(cluster.node, "RESERVED")
        (kept,) = take(tools, [cluster.host.host()], Taking(wait_s=1, keep=True), poll_s=0.2)
    assert kept.error is None
    assert "RESERVED" in await_text(cluster.node, "RESERVED")


def test_a_drain_of_others_is_left_alone(cluster: Cluster, yard: Yard, tmp_path: Path) -> None:
    name = cluster.host.name
    cluster.host.exec("scontrol", "update", f"NodeName={name}", "State=DRAIN", "Reason=bad memory")
    with tools_of(cluster, yard, tmp_path) as tools:
        (held,) = take(tools, [cluster.host.host()], Taking(drain=True, wait_s=1))
        assert held.changes == ()
        (given,) = give(tools, [cluster.host.host()])
    assert given.changes == ()
    assert "Reason=bad memory" in cluster.node()


def test_a_silent_controller_is_unknown_and_nothing_is_done(
    stand_in: Cluster, yard: Yard, tmp_path: Path
) -> None:
    stand_in.silence()
    with tools_of(stand_in, yard, tmp_path) as tools:
        (held,) = take(tools, [stand_in.host.host()], QUICK, poll_s=0.3)
    assert isinstance(held.error, Blocked)
    assert "cannot tell how Slurm sees" in held.error.message


def test_check_changes_nothing(stand_in: Cluster, yard: Yard, tmp_path: Path) -> None:
    stand_in.submit(600)
    before = stand_in.node()
    with tools_of(stand_in, yard, tmp_path) as tools:
        (held,) = take(tools, [stand_in.host.host()], Taking(), check=True)
    assert len(held.changes) == len(held.jobs) == 1
    assert "RESERVED" not in stand_in.node()
    assert before.partition("CPULoad")[0] == stand_in.node().partition("CPULoad")[0]


def test_undo_gives_back_what_a_receipt_took(stand_in: Cluster, yard: Yard, tmp_path: Path) -> None:
    host = stand_in.host.host()
    with tools_of(stand_in, yard, tmp_path) as tools:
        take(tools, [host], Taking(drain=True, wait_s=5))
        await_text(stand_in.node, "DRAIN")
        (undone,) = undo(tools, (host,), to="", check=False)
    assert undone.ended.error is None
    await_gone(stand_in.node, "DRAIN")


def test_interrupting_the_wait_gives_the_host_back(
    stand_in: Cluster, yard: Yard, tmp_path: Path
) -> None:
    stand_in.submit(600)
    host = stand_in.host
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    (inventory / "hosts.yml").write_text(
        f"hosts:\n  {host.name}: {{address: {host.address}, user: root, key_file: {host.key}}}\n"
    )
    words = ("slurm.take", "--host", host.name, "--json", "--inventory", str(inventory),
             "--known-hosts", str(yard.known_hosts))  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "bringup", *words], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            next(line for line in process.stdout if json.loads(line).get("stage") == "wait")
            await_text(stand_in.node, "RESERVED")
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(120) == 130
        finally:
            process.kill()
    assert "RESERVED" not in stand_in.node()
