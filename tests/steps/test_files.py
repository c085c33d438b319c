"""File and folder steps against a real shell: what they see is what stands there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bringup.core.script import compose, split
from bringup.core.steps import Observation, Run, State, Step, Write, observed
from bringup.core.words import HostPath, command
from bringup.steps.directory import directory_step
from bringup.steps.file import file_step, text_file


def look(step: Step, root: Path) -> Observation:
    script = compose([step.ask], nonce="n", root=str(root))
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    return observed(step, split(done.stdout.decode(), nonce="n")[step.id])


def test_an_absent_file_is_seen_as_absent(tmp_path: Path) -> None:
    assert look(text_file("/x", "a"), tmp_path).found == "absent"


def test_a_file_as_wanted_is_same(tmp_path: Path) -> None:
    (tmp_path / "x y").write_text("a\n")
    (tmp_path / "x y").chmod(0o750)
    assert look(text_file("/x y", "a\n", mode=0o750), tmp_path).state is State.SAME


@pytest.mark.parametrize(("content", "mode"), [("b\n", 0o644), ("a\n", 0o600)])
def test_other_content_or_mode_is_a_change(tmp_path: Path, content: str, mode: int) -> None:
    (tmp_path / "x").write_text(content)
    (tmp_path / "x").chmod(mode)
    seen = look(text_file("/x", "a\n"), tmp_path)
    assert seen.state is State.CHANGE
    assert seen.detail == ("b" if content == "b\n" else "")


def test_a_secret_file_never_shows_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old token")
    step = file_step(Write(HostPath("/x"), b"new token", 0o600, secret=True))
    assert step.content is None
    assert "token" not in look(step, tmp_path).detail


def test_a_link_or_folder_at_the_place_is_a_change_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    assert look(text_file("/link", "a"), tmp_path).found == "link /etc/passwd"
    assert look(text_file("/folder", "a"), tmp_path).found == "not a file"


def test_a_folder_step_makes_what_it_then_sees(tmp_path: Path) -> None:
    step = directory_step("/a/b c", mode=0o750)
    assert look(step, tmp_path).found == "absent"
    (action,) = step.actions
    assert isinstance(action, Run)
    subprocess.run(["sh", "-c", f"R={tmp_path}; {command(action.words)}"], check=True)
    assert look(step, tmp_path).state is State.SAME
