"""Work on images keeps out of other work's way, and one host's trouble stays its own."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.errors import LockHeld
from bringup.core.event import Event
from bringup.core.host import Host, Login
from bringup.edge.engine import Engine
from bringup.edge.local import LocalRemote
from bringup.edge.registry import Stored
from bringup.flow.carry import Carrier
from bringup.flow.image_keep import FRESH_MINUTES, prune, rollback
from bringup.flow.ship_types import Shipping
from bringup.image.facts import ImageFacts
from bringup.image.mirror import Manifest
from bringup.image.route import Cargo
from tests.edge.reaching import reach
from tests.fleet.sshd import running

REFERENCE = "team/k3:1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("root/tmp", "root/var/lib/bringup/images/old", "root/var/lib/bringup/images/new"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "root"


def engine(root: Path, text: str = "exit 0") -> Engine:
    """Return an engine of a host below a folder, whose command is a script."""
    program = root / "docker"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    remote = LocalRemote(Host("h1", Login(""), root=str(root)))
    return Engine(remote, (str(program),), "h1")


def test_prune_leaves_parts_that_a_shipment_may_be_at_work_on(root: Path) -> None:
    stage = root / "var/lib/bringup/images"
    long_ago = time.time() - 60 * (FRESH_MINUTES + 5)
    for name in ("old", "new"):
        (stage / name / "000000.part").write_bytes(b"x")
        os.utime(stage / name / "000000.part", (long_ago, long_ago))
        os.utime(stage / name, (long_ago, long_ago))
    (stage / "new" / "000001.part").write_bytes(b"x")
    events: list[Event] = []
    (done,) = prune(
        {"h1": engine(root)}, REFERENCE, stage="/var/lib/bringup/images", listen=events.append
    )
    assert done.error is None
    assert [path.name for path in stage.iterdir()] == ["new"]
    assert [event.text for event in events] == [
        f"{stage}/new stays: touched in the last {FRESH_MINUTES} minutes"
    ]


@pytest.mark.parametrize("act", [prune, rollback])
def test_host_that_somebody_is_changing_is_left_alone(root: Path, act: object) -> None:
    busy = engine(root, f"echo >{root}/called")
    other = LocalRemote(Host("h1", Login(""), root=str(root)))
    with other.lock("ann provisions"):
        (done,) = act({"h1": busy}, REFERENCE)  # type: ignore[operator]
    assert isinstance(done.error, LockHeld)
    assert "ann provisions" in f"{done.error.message} {done.error.said}"
    assert not (root / "called").exists()


def carrier(root: Path, engine: Engine, listen: list[Event]) -> Carrier:
    cargo = Cargo(ImageFacts("sha256:" + "a" * 64), REFERENCE, f"{REFERENCE}-aa")
    shipping = Shipping(
        source=engine,
        hosts={"seed": engine.remote},
        engine=engine.words,
        roots={"seed": str(root)},
        addresses={"seed": "127.0.0.1"},
        folder=root,
        listen=listen.append,
    )
    stored = Stored(b"{}", (), Manifest("sha256:m", "sha256:c"))
    return Carrier(shipping, cargo, None, stored, root)


def test_relay_that_does_not_start_leaves_each_host_to_be_sent_its_own(root: Path) -> None:
    refusing = engine(root, "echo 'exec: \"python3\": executable file not found' >&2; exit 127")
    events: list[Event] = []
    one = carrier(root, refusing, events)
    with one.relaying("seed", 0):
        assert one.relay_url == ""
    assert "cannot serve parts on seed" in events[0].text
    assert "each host is sent its own from here" in events[0].text
    assert "python3" in events[0].text


def test_seed_that_dies_after_it_handed_on_takes_nothing_back(root: Path, tmp_path: Path) -> None:
    serving = engine(root, "case $1 in logs) echo port 4711 ;; esac")
    events: list[Event] = []
    with (
        running(tmp_path / "sshd") as server,
        reach(server.host("seed", root=str(root)), server.known_hosts) as remote,
    ):
        one = carrier(root, replace(serving, remote=remote), events)
        with one.relaying("seed", 0):
            assert one.relay_url.startswith("http://127.0.0.1:4711/")
            server.kill()
    assert "cannot remove" in events[-1].text
