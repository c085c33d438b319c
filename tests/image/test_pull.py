"""A pull that goes on without us is followed by what it is, not by a number: no endless wait."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from bringup.core.errors import CommandFailed
from bringup.core.host import Host, Login
from bringup.core.words import HostPath
from bringup.edge.engine import Engine
from bringup.edge.local import LocalRemote
from bringup.flow import pull as flow_pull
from bringup.flow.pull import pull

REFERENCE = "team/k3:1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pull"


def engine(tmp_path: Path, text: str) -> Engine:
    """Return an engine of this machine whose command is a script."""
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return Engine(LocalRemote(Host("h1", Login(""))), (str(program),), "h1")


def of(path: Path) -> HostPath:
    return HostPath(str(path))


def test_pull_that_ends_well_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    assert pull(engine(tmp_path, "exit 0"), REFERENCE, of(folder)) == REFERENCE
    assert not folder.exists()


def test_refusal_of_the_engine_is_said(tmp_path: Path, folder: Path) -> None:
    refusing = engine(tmp_path, "echo manifest unknown; exit 7")
    with pytest.raises(CommandFailed, match="exit 7") as caught:
        pull(refusing, REFERENCE, of(folder))
    assert caught.value.said == "manifest unknown"


def test_pull_that_is_killed_is_not_waited_for(tmp_path: Path, folder: Path) -> None:
    def kill() -> None:
        deadline = time.monotonic() + 240
        while not (folder / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(CommandFailed, match="cannot pull") as caught:
        pull(engine(tmp_path, "exec sleep 600"), REFERENCE, of(folder))
    killer.join()
    assert "it was killed, or the host restarted" in caught.value.said


def test_number_of_an_earlier_pull_that_is_somebody_elses_now_starts_anew(
    tmp_path: Path, folder: Path
) -> None:
    """What a reboot leaves: the folder, and a number that another process bears by now."""
    folder.mkdir()
    (folder / "ref").write_text(REFERENCE + "\n")
    (folder / "pid").write_text(f"{os.getpid()} 1 another-boot\n")
    assert pull(engine(tmp_path, "exit 0"), REFERENCE, of(folder), seconds=600) == REFERENCE


def test_pull_that_still_runs_is_followed_and_not_started_twice(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_pull, "POLL_S", 0.1)
    slow = engine(
        tmp_path, f"echo x >>{tmp_path}/starts; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    )

    def cut(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(slow, REFERENCE, of(folder), on_state=cut)
    assert (
        pull(slow, REFERENCE, of(folder), on_state=lambda _: (tmp_path / "go").touch()) == REFERENCE
    )
    assert (tmp_path / "starts").read_text() == "x\n"


def test_pull_that_takes_too_long_is_stopped(tmp_path: Path, folder: Path) -> None:
    endless = engine(tmp_path, f"echo $$ >{tmp_path}/own; exec sleep 600")
    with pytest.raises(CommandFailed, match="exit 124"):
        pull(endless, REFERENCE, of(folder), seconds=5)
    own = int((tmp_path / "own").read_text())
    deadline = time.monotonic() + 240
    while Path(f"/proc/{own}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{own}").exists() or "Z" in Path(f"/proc/{own}/stat").read_text()
