"""What runs on this machine for an image ends by itself: a full disk, a hang, a slow index."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bringup.core.errors import CommandFailed
from bringup.core.host import Host, Login
from bringup.edge import skopeo
from bringup.edge.engine import Engine
from bringup.edge.local import LocalRemote
from bringup.edge.pip import Index, Target

HERE = LocalRemote(Host("controller", Login("")))
TARGET = Target("3.12", ("any",))


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_save_ends_when_the_packer_does(tmp_path: Path) -> None:
    endless = program(tmp_path, "docker", "exec cat /dev/zero")
    packer = program(tmp_path, "gzip", "echo 'No space left on device' >&2; exit 1")
    with pytest.raises(CommandFailed, match="gzip ended with 1") as caught:
        Engine(HERE, (str(endless),)).save("k3:1", tmp_path / "packed", str(packer))
    assert caught.value.said == "No space left on device"


def test_save_that_hangs_is_stopped(tmp_path: Path) -> None:
    hanging = program(tmp_path, "docker", "exec sleep 600")
    with pytest.raises(CommandFailed, match="ended with 124"):
        Engine(HERE, (str(hanging),)).save("k3:1", tmp_path / "packed", "gzip", seconds=1)


def test_engine_that_fails_to_save_is_said(tmp_path: Path) -> None:
    failing = program(tmp_path, "docker", "exit 3")
    with pytest.raises(CommandFailed, match="cannot save k3:1: exit 3"):
        Engine(HERE, (str(failing),)).save("k3:1", tmp_path / "packed", "gzip")


def test_copy_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = program(tmp_path, "skopeo", "echo copying; exec sleep 600")
    monkeypatch.setattr(skopeo, "PROGRAM", str(hanging))
    lines: list[str] = []
    with pytest.raises(CommandFailed, match="did not end within 4 s"):
        skopeo.copy("far/base:1", "localhost:1/base:1", on_line=lines.append, seconds=4)
    assert lines[0] == "copying"


def test_wheels_that_do_not_come_are_said(tmp_path: Path) -> None:
    hanging = program(tmp_path, "pip", "echo Downloading torch; exec sleep 600")
    index = Index(program=(str(hanging),), fetch_seconds=4)
    lines: list[str] = []
    with pytest.raises(CommandFailed, match=r"for torch==2\.8\.0: pip did not end within 4 s"):
        index.fetch(["torch==2.8.0"], TARGET, tmp_path, on_line=lines.append)
    assert lines[0] == "Downloading torch"


def test_settings_of_this_machine_do_not_reach_a_folder_of_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://elsewhere.example")
    shows = "import os; print(*sorted(n for n in os.environ if n.startswith('PIP_')))"
    index = Index(wheels=tmp_path, program=(sys.executable, "-c", shows))
    lines: list[str] = []
    index.fetch(["torch==2.8.0"], TARGET, tmp_path, on_line=lines.append)
    assert lines == ["PIP_CONFIG_FILE"]
