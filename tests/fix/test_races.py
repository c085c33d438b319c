"""Whoever edits a file between look and write keeps what they wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.core.errors import StalePlan
from bringup.core.host import Host, Login
from bringup.core.plan import Planned
from bringup.core.steps import State, Write
from bringup.edge.local import LocalRemote
from bringup.steps.edit import docker_daemon, edited_file, marked_block
from bringup.steps.file import text_file

from .hands import plan, settle, states, write

BLOCK = marked_block("x", "ours")
STEPS = {
    "/etc/docker/daemon.json": (docker_daemon({"log-opts": {"max-size": "1m"}}), '{"a": 1}\n'),
    "/etc/fstab": (edited_file("/etc/fstab", BLOCK, title="edit fstab"), "/dev/sda / ext4\n"),
    "/etc/security/limits.conf": (
        edited_file("/etc/security/limits.conf", BLOCK, title="edit limits"), "* - nofile 7\n",
    ),
    "/opt/bringup/serve/x.sh": (text_file("/opt/bringup/serve/x.sh", "new\n"), "old\n"),
}  # fmt: skip


def writes(planned: Planned) -> tuple[Write, ...]:
    return tuple(action for action in planned.step.actions if isinstance(action, Write))


def remote(root: Path) -> LocalRemote:
    return LocalRemote(Host("here", Login("here"), root=str(root)))


@pytest.mark.parametrize("path", STEPS)
@pytest.mark.parametrize("theirs", ["theirs\n", None])
def test_a_file_edited_since_the_look_is_left_as_it_is(
    tmp_path: Path, path: str, theirs: str | None
) -> None:
    step, old = STEPS[path]
    file = write(tmp_path, path, old)
    (planned,) = plan([step], root=str(tmp_path))
    if theirs is None:
        file.unlink()
    else:
        file.write_text(theirs)
    with pytest.raises(StalePlan, match=f"cannot write {path} on here: somebody changed it"):
        remote(tmp_path).write(writes(planned))
    assert (file.read_text() if file.exists() else None) == theirs
    assert sorted(p.name for p in file.parent.iterdir()) == ([file.name] if theirs else [])


@pytest.mark.parametrize("path", STEPS)
def test_a_file_made_since_the_look_is_left_as_it_is(tmp_path: Path, path: str) -> None:
    (planned,) = plan([STEPS[path][0]], root=str(tmp_path))
    file = write(tmp_path, path, "theirs\n")
    with pytest.raises(StalePlan):
        remote(tmp_path).write(writes(planned))
    assert file.read_text() == "theirs\n"


def test_of_files_that_go_together_none_is_written_where_one_was_edited(tmp_path: Path) -> None:
    steps = [text_file("/etc/one", "1\n"), text_file("/etc/two", "2\n")]
    both = plan(steps, root=str(tmp_path))
    write(tmp_path, "/etc/two", "theirs\n")
    with pytest.raises(StalePlan):
        remote(tmp_path).write(tuple(w for planned in both for w in writes(planned)))
    assert [p.name for p in (tmp_path / "etc").iterdir()] == ["two"]


def test_the_next_look_takes_their_edit_in(tmp_path: Path) -> None:
    step, old = STEPS["/etc/fstab"]
    file = write(tmp_path, "/etc/fstab", old)
    plan([step], root=str(tmp_path))
    file.write_text(f"{old}nas:/models /models nfs4\n")
    assert states(settle([step], root=str(tmp_path))) == [State.SAME]
    assert file.read_text().startswith(f"{old}nas:/models /models nfs4\n# bringup: begin x\n")
