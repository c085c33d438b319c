"""Files of a host share one look, which tells of each what its own look tells."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from bringup.core.script import Section, compose, split
from bringup.core.steps import Step, Write
from bringup.core.words import HostPath
from bringup.steps import together
from bringup.steps.edit import edited_file
from bringup.steps.file import file_step, text_file
from tests.edge import shells


def asked(asks: Iterable[object], root: Path, path: str) -> str:
    script = compose(asks, nonce="n", root=str(root))  # type: ignore[arg-type]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, check=True, text=True, env=environment
    ).stdout


def shared(steps: tuple[Step, ...], root: Path, path: str) -> dict[str, Section]:
    return together.sections(steps, split(asked(together.asks(steps), root, path), nonce="n"))


def alone(steps: tuple[Step, ...], root: Path, path: str) -> dict[str, Section]:
    answer = split(asked([step.ask for step in steps], root, path), nonce="n")
    return {step.id: answer[step.id] for step in steps}


def every_kind(root: Path) -> tuple[Step, ...]:
    """Return steps whose files stand in every way there is."""
    (root / "d").mkdir()
    (root / "d/link").symlink_to("to there")
    (root / "d/folder").mkdir()
    (root / "d/same").write_text("same\n")
    (root / "d/mode").write_text("mode\n")
    (root / "d/mode").chmod(0o640)
    (root / "d/other name").write_text("+one\n\nshow ./d/x\nat 3 absent")
    (root / "d/empty").touch()
    (root / "d/-secret").write_text("token")
    (root / "d/*").write_text("star\n")
    return (
        text_file("/d/link", "x"),
        text_file("/d/folder", "x"),
        text_file("/d/gone", "x"),
        text_file("/d/none/gone", "x"),
        text_file("/d/same/below", "x"),
        text_file("/d/same", "same\n"),
        text_file("/d/mode", "mode\n"),
        text_file("/d/other name", "new"),
        text_file("/d/empty", "new"),
        text_file("/d/*", "new"),
        file_step(Write(HostPath("/d/-secret"), b"new", 0o600, secret=True)),
        file_step(Write(HostPath("/d/same"), b"same\n", 0o644, "root:root", secret=True)),
        edited_file("/d/it's", str, title=""),
        edited_file("/d/other name", str, title=""),
    )


@pytest.mark.parametrize("shell", shells.SHELLS)
def test_a_shared_look_tells_what_each_look_alone_tells(tmp_path: Path, shell: str) -> None:
    path = shells.path_with_shell(tmp_path / "bin", shell)
    root = tmp_path / "root"
    root.mkdir()
    for step in every_kind(root):
        pair = (step, text_file("/d/gone too", "x"))
        assert shared(pair, root, path) == alone(pair, root, path)


def test_all_files_share_one_section(tmp_path: Path) -> None:
    steps = tuple(text_file(f"/{n}", "x") for n in range(together.MOST_FILES))
    assert len(together.asks(steps)) == 1
    assert len(together.asks((*steps, text_file("/more", "x")))) == 2
    assert len(shared(steps, tmp_path, os.environ["PATH"])) == len(steps)


def test_contents_beyond_one_section_are_left_to_looks_of_their_own(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name * 250_000)
    steps = tuple(text_file(f"/{name}", "x") for name in "abc")
    assert shared(steps, tmp_path, os.environ["PATH"]).keys() == {"file:/a", "file:/b"}


@pytest.mark.parametrize("path", ["/a\\b", "/a\nb"])
def test_a_name_with_odd_bytes_looks_for_itself(path: str) -> None:
    odd = text_file(path, "x")
    shared_, others = together.apart((odd, text_file("/1", ""), text_file("/2", "")))
    assert odd in others
    assert len(shared_) == 2


def test_a_file_that_may_not_be_read_is_left_to_its_own_look(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sha256sum").write_text(
        '#!/bin/sh\n[ $# = 0 ] || shift\necho "sha256sum: Permission denied" >&2\n'
        'exec /usr/bin/sha256sum "$@"\n'
    )
    (tmp_path / "bin/sha256sum").chmod(0o755)
    for name in "ab":
        (tmp_path / name).write_text(name)
    steps = tuple(text_file(f"/{name}", "x") for name in "ab")
    found = shared(steps, tmp_path, f"{tmp_path}/bin:{os.environ['PATH']}")
    assert found.keys() == {"file:/b"}


@pytest.mark.root
def test_below_a_folder_that_may_not_be_searched_nothing_is_absent() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own may not be searched by others
        Path(folder).chmod(0o755)
        (Path(folder) / "closed").mkdir(mode=0o700)
        step = text_file("/closed/x", "x")
        script = compose([step.ask], nonce="n", root=folder)
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", script],
            capture_output=True, text=True, check=True, cwd="/",
        )  # fmt: skip
    assert split(done.stdout, nonce="n")[step.id].trouble == "permission denied"
