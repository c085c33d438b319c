"""What every remote does, over SSH and on the controller alike."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bringup.core.errors import CommandFailed, LockHeld, ToolError, Unreachable, UsageError
from bringup.core.host import Host, Login
from bringup.core.steps import Push, Run, Write
from bringup.core.words import HostPath, Secret
from bringup.edge.actions import ScriptedRemote
from bringup.edge.local import LocalRemote
from bringup.edge.ssh import SshFleet, SshOptions
from tests.fleet.sshd import Sshd

from . import shells

CAP = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder under which a host's files lie."""
    folder = tmp_path / "root"
    (folder / "run/lock").mkdir(parents=True)
    return folder


@pytest.fixture(params=["local", "ssh"])
def remote(request: pytest.FixtureRequest, root: Path) -> Iterator[ScriptedRemote]:
    """One host, reached in either way."""
    if request.param == "local":
        yield LocalRemote(Host("here", Login(""), root=str(root)), cap_bytes=CAP)
        return
    sshd: Sshd = request.getfixturevalue("sshd")
    host = sshd.host(root=str(root))
    options = SshOptions(known_hosts=sshd.known_hosts, use_ssh_config=False, cap_bytes=CAP)
    with SshFleet({host.name: host}, options) as fleet:
        yield fleet.remote(host.name)


def eventually(claim: Callable[[], bool], seconds: float = 120) -> bool:
    """Wait until a claim is true; return whether it became so."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def runs(mark: str) -> bool:
    """Say whether a process with a mark in its command line is alive."""
    return subprocess.run(["pgrep", "-f", mark], check=False, capture_output=True).returncode == 0


@pytest.fixture
def mark() -> str:
    """A number of seconds that no other sleep on this machine has."""
    return f"3600.{uuid.uuid4().int % 10**9:09d}"


# Reading and running


def test_read_gives_exit_code_and_both_streams(remote: ScriptedRemote) -> None:
    result = remote.read("echo out; echo err >&2; exit 3", seconds=60)
    assert (result.exit, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_script_of_200_kib_is_read_whole(remote: ScriptedRemote) -> None:
    script = f"x='{'a' * 200_000}'; echo ${{#x}}"
    assert remote.read(script, seconds=60).stdout == "200000\n"


@pytest.mark.parametrize(
    "word",
    ["a b", "$HOME", "`id`", "it's", '"', "a;b", "\\", "*", "~", "-n", "é\u2028", "a\nb", ""],
)
def test_word_reaches_the_command_as_it_is(remote: ScriptedRemote, word: str) -> None:
    assert remote.run(Run(("printf", "%s|", word))).stdout == f"{word}|"


def test_host_path_lies_under_the_root(remote: ScriptedRemote, root: Path) -> None:
    (root / "note").write_text("here")
    assert remote.run(Run(("cat", HostPath("/note")))).stdout == "here"


def test_secret_reaches_the_command(remote: ScriptedRemote) -> None:
    assert remote.run(Run(("printf", "%s", Secret("s3cret")))).stdout == "s3cret"


def test_exit_code_of_a_command_is_data(remote: ScriptedRemote) -> None:
    assert remote.run(Run(("false",))).exit == 1
    assert remote.run(Run(("no-such-command-here",))).exit == 127


def test_input_larger_than_every_window_comes_back_whole(remote: ScriptedRemote) -> None:
    data = b"0123456789abcdef" * 400_000
    result = remote.run(Run(("sha256sum",), input=data))
    assert result.stdout.split()[0] == hashlib.sha256(data).hexdigest()


def test_output_while_input_still_goes_in_blocks_nobody(remote: ScriptedRemote) -> None:
    result = remote.run(Run(("cat",), input=b"line\n" * 1_000_000))
    assert "bytes left out here" in result.stdout


def test_command_that_ignores_its_input_ends_all_the_same(remote: ScriptedRemote) -> None:
    assert remote.run(Run(("true",), input=b"x" * 5_000_000)).exit == 0


def test_output_beyond_the_cap_keeps_first_and_last(remote: ScriptedRemote) -> None:
    result = remote.read("echo first; head -c 20000000 /dev/zero; echo; echo last", seconds=60)
    assert result.stdout.startswith("first\n")
    assert result.stdout.endswith("\nlast\n")
    assert len(result.stdout) < CAP + 100


def test_bytes_that_are_not_utf8_survive(remote: ScriptedRemote) -> None:
    assert remote.read(r"printf 'a\377b\n'", seconds=60).stdout == "a\ufffdb\n"


def test_lines_are_followed_as_they_come(remote: ScriptedRemote, root: Path) -> None:
    seen: list[str] = []

    def follow(line: str) -> None:
        seen.append(line)
        (root / "go").touch()

    script = f"echo one; until [ -e {root}/go ]; do sleep 0.05; done; echo two; printf three"
    assert remote.run(Run(("sh", "-c", script), seconds=300), on_line=follow).exit == 0
    assert seen == ["one", "two", "three"]


def test_background_child_that_holds_the_output_is_not_waited_for(
    remote: ScriptedRemote, mark: str
) -> None:
    began = time.monotonic()
    result = remote.run(Run(("sh", "-c", f"echo done; setsid sleep {mark} &"), seconds=300))
    subprocess.run(["pkill", "-f", f"sleep {mark}"], check=False)
    assert result.stdout == "done\n"
    assert time.monotonic() - began < 200


def test_command_out_of_time_is_ended_on_the_host(remote: ScriptedRemote, mark: str) -> None:
    result = remote.run(Run(("sh", "-c", f"sleep {mark} & sleep {mark}"), seconds=1))
    assert result.exit == 124
    assert "ran longer than 1 s" in result.stderr
    assert eventually(lambda: not runs(f"sleep {mark}"))


# Writing


def test_write_sets_content_mode_and_folder(remote: ScriptedRemote, root: Path) -> None:
    remote.write(
        (
            Write(HostPath("/etc/one"), b"1" * 100_000, 0o600),
            Write(HostPath("/etc/two words"), b"", 0o755),
            Write(HostPath("/opt/new/deep/three"), b"\0\xff", 0o640),
        )
    )
    assert (root / "etc/one").read_bytes() == b"1" * 100_000
    assert [
        (root / name).stat().st_mode & 0o7777
        for name in ("etc/one", "etc/two words", "opt/new/deep/three")
    ] == [0o600, 0o755, 0o640]
    assert (root / "opt/new/deep/three").read_bytes() == b"\0\xff"
    assert leftovers(root) == []


def test_write_replaces_a_file_by_another_one(remote: ScriptedRemote, root: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc/one").write_text("old")
    held = (root / "etc/one").open()
    remote.write((Write(HostPath("/etc/one"), b"new"),))
    assert held.read() == "old"
    assert (root / "etc/one").read_text() == "new"


def test_write_of_nothing_asks_the_host_nothing(remote: ScriptedRemote) -> None:
    remote.write(())


@pytest.mark.root
def test_write_sets_the_owner_and_keeps_special_bits(remote: ScriptedRemote, root: Path) -> None:
    remote.write((Write(HostPath("/one"), b"1", 0o4750, owner="daemon:adm"),))
    found = (root / "one").stat()
    assert (found.st_mode & 0o7777, (root / "one").owner(), (root / "one").group()) == (
        0o4750,
        "daemon",
        "adm",
    )


def test_unknown_owner_leaves_the_old_file_and_names_him(
    remote: ScriptedRemote, root: Path
) -> None:
    (root / "one").write_text("old")
    with pytest.raises(CommandFailed, match=r"cannot write /one .*no such user.*nobody-here") as it:
        remote.write((Write(HostPath("/one"), b"new", owner="nobody-here"),))
    assert "invalid user" in it.value.said
    assert (root / "one").read_text() == "old"
    assert leftovers(root) == []


def test_link_in_the_place_of_a_file_is_refused(remote: ScriptedRemote, root: Path) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    with pytest.raises(CommandFailed, match=r"/link .*symbolic link \(real\)"):
        remote.write((Write(HostPath("/link"), b"new"),))
    assert (root / "real").read_text() == "old"


def test_folder_in_the_place_of_a_file_is_refused(remote: ScriptedRemote, root: Path) -> None:
    (root / "place").mkdir()
    with pytest.raises(CommandFailed, match=r"/place .*something else stands"):
        remote.write((Write(HostPath("/place"), b"new"),))


def test_file_in_the_place_of_a_folder_is_refused(remote: ScriptedRemote, root: Path) -> None:
    (root / "place").touch()
    with pytest.raises(CommandFailed, match=r"/place/below .*folder cannot be made"):
        remote.write((Write(HostPath("/place/below"), b"new"),))


def test_link_that_leads_out_of_the_root_is_not_followed(
    remote: ScriptedRemote, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "etc").symlink_to(outside)
    with pytest.raises(CommandFailed, match="leads out of the host's root"):
        remote.write((Write(HostPath("/etc/new/one"), b"new"),))
    assert list(outside.iterdir()) == []


ODD = (
    "-rf",
    ".hidden",
    ".bringup",
    "two  words",
    "a\\x2db",
    "line\nfeed",
    "*",
    "ü",
    "n" * 200,
    "+x",
)


@pytest.mark.parametrize("owner", ["", "0:0"])
def test_names_with_odd_bytes_are_written_as_they_are(
    remote: ScriptedRemote, root: Path, owner: str
) -> None:
    if owner and os.geteuid():
        owner = f"{os.geteuid()}:{os.getegid()}"
    files = [Write(HostPath(f"/opt/{n}"), n.encode(), 0o604, owner) for n in ODD]
    remote.write(tuple(files))
    assert {path.name: path.read_text() for path in (root / "opt").iterdir()} == {n: n for n in ODD}
    assert {path.stat().st_mode & 0o777 for path in (root / "opt").iterdir()} == {0o604}


def test_one_target_that_cannot_be_replaced_is_named(
    remote: ScriptedRemote, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(remote, LocalRemote):
        return
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mv").write_text('#!/bin/sh\nrm -f "$2"\necho "mv: Read-only" >&2\nexit 1\n')
    (tmp_path / "bin/mv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(CommandFailed, match="cannot write /b on"):
        remote.write(tuple(Write(HostPath(f"/{name}"), b"x") for name in "abc"))
    assert leftovers(root) == []


@pytest.mark.parametrize("path", ["etc/one", "/etc/../one", "/etc/", "/./one"])
def test_path_that_is_not_plain_is_refused(remote: ScriptedRemote, path: str) -> None:
    with pytest.raises(UsageError, match="absolute path"):
        remote.write((Write(HostPath(path), b""),))


def test_leftovers_of_a_killed_run_are_cleared(remote: ScriptedRemote, root: Path) -> None:
    (root / "etc/.bringup.dead").mkdir(parents=True)
    (root / "etc/.bringup.dead/0").touch()
    (root / "etc/.bringup.dead.1").touch()
    remote.write((Write(HostPath("/etc/one"), b"1"),))
    assert leftovers(root) == []


def leftovers(root: Path) -> list[Path]:
    return [*root.rglob(".bringup.*"), *root.rglob("*.bringup-*")]


KILL_POINTS = [("mkdir", 0), ("tar", 0), ("sha256sum", 0), ("sync", 0), ("sync", 1), ("mv", 0),
               ("mv", 1), ("mv", 2), ("rm", 0), ("rm", 1)]  # fmt: skip


@pytest.mark.parametrize(("tool", "call"), KILL_POINTS)
def test_write_killed_anywhere_leaves_each_file_old_or_new(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, call: int
) -> None:
    names = ("etc/a", "etc/b", "opt/c")
    for name in names:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("old")
    local = LocalRemote(Host("here", Login(""), root=str(root)))
    new = tuple(Write(HostPath(f"/{name}"), b"new") for name in names)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", shells.path_with_killer(tmp_path / "bin", tool, call))
        with pytest.raises(ToolError):
            local.write(new)
    assert {(root / name).read_text() for name in names} <= {"old", "new"}
    local.write(new)
    assert [(root / name).read_text() for name in names] == ["new"] * 3
    assert leftovers(root) == []


# Pushing


def archive(tmp_path: Path, content: bytes, mode: str = "w:gz") -> Path:
    """Make an archive with one file in one folder."""
    path = tmp_path / "bundle.tar"
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        info = tarfile.TarInfo("sub/file")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return path


def push_of(path: Path) -> Push:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Push(HostPath("/data/bundle"), str(path), digest, seconds=60)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_push_unpacks_whatever_the_compression(
    remote: ScriptedRemote, root: Path, tmp_path: Path, mode: str
) -> None:
    sent: list[int] = []
    path = archive(tmp_path, os.urandom(300_000), mode)
    remote.push(push_of(path), on_bytes=sent.append)
    assert (root / "data/bundle/sub/file").stat().st_size == 300_000
    assert sent[-1] == path.stat().st_size
    assert leftovers(root) == []


def test_push_replaces_the_whole_folder(remote: ScriptedRemote, root: Path, tmp_path: Path) -> None:
    (root / "data/bundle").mkdir(parents=True)
    (root / "data/bundle/gone").touch()
    remote.push(push_of(archive(tmp_path, b"new")))
    assert [p.name for p in (root / "data/bundle").iterdir()] == ["sub"]
    assert leftovers(root) == []


def test_damaged_archive_leaves_the_old_folder(
    remote: ScriptedRemote, root: Path, tmp_path: Path
) -> None:
    (root / "data/bundle/old").mkdir(parents=True)
    push = Push(HostPath("/data/bundle"), str(archive(tmp_path, b"new")), "0" * 64)
    with pytest.raises(CommandFailed, match=r"/data/bundle .*arrived damaged"):
        remote.push(push)
    assert [p.name for p in (root / "data/bundle").iterdir()] == ["old"]
    assert leftovers(root) == []


def test_missing_archive_is_said_before_the_host_is_asked(remote: ScriptedRemote) -> None:
    with pytest.raises(ToolError, match="cannot read the archive /no/such"):
        remote.push(Push(HostPath("/data/bundle"), "/no/such", "0" * 64))


PUSH_KILL_POINTS = [("sha256sum", 0), ("tar", 0), ("sync", 0), ("mv", 0), ("mv", 1), ("mv", 2),
                    ("rm", 1), ("rm", 2)]  # fmt: skip


@pytest.mark.parametrize(("tool", "call"), PUSH_KILL_POINTS)
def test_push_killed_anywhere_leaves_the_old_folder_or_the_new_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, call: int
) -> None:
    (root / "data/bundle/old").mkdir(parents=True)
    local = LocalRemote(Host("here", Login(""), root=str(root)))
    push = push_of(archive(tmp_path, b"new"))
    with monkeypatch.context() as patch:
        patch.setenv("PATH", shells.path_with_killer(tmp_path / "bin", tool, call))
        with pytest.raises(ToolError):
            local.push(push)
    kept = [root / "data/bundle", root / "data/bundle.bringup-old"]
    found = {p.name for folder in kept if folder.exists() for p in folder.iterdir()}
    assert found in ({"old"}, {"sub"}, {"old", "sub"})
    local.push(push)
    assert (root / "data/bundle/sub/file").read_bytes() == b"new"
    assert leftovers(root) == []


# Locking


def test_second_lock_is_refused_naming_the_first(remote: ScriptedRemote) -> None:
    with (
        remote.lock("alice at ops1: provision"),
        pytest.raises(LockHeld, match=r"alice at ops1: provision holds it since 20\d\d-") as it,
        remote.lock("bob"),
    ):
        pass
    assert "kill " in it.value.remedy


def test_lock_leaves_nothing_and_can_be_taken_again(remote: ScriptedRemote, root: Path) -> None:
    for _ in range(2):
        with remote.lock("alice"):
            assert (root / "run/lock/bringup/holder").exists()
    assert list((root / "run/lock").iterdir()) == []


def test_lock_goes_to_tmp_where_there_is_no_run_lock(remote: ScriptedRemote, root: Path) -> None:
    (root / "run/lock").rmdir()
    with remote.lock("alice"):
        assert (root / "tmp/bringup.lock/holder").exists()


def test_lock_of_a_dead_holder_is_taken_over(remote: ScriptedRemote, root: Path) -> None:
    with remote.lock("alice"):
        holder = (root / "run/lock/bringup/holder").read_text().split()[0]
        subprocess.run(["kill", "-KILL", holder], check=True)
        assert eventually(lambda: remote.held is not None and remote.held.ended)
        with LocalRemote(Host("here", Login(""), root=str(root))).lock("bob"):
            assert "bob" in (root / "run/lock/bringup/holder").read_text()


def test_nothing_is_changed_once_the_lock_is_lost(remote: ScriptedRemote, root: Path) -> None:
    with remote.lock("alice"):
        holder = (root / "run/lock/bringup/holder").read_text().split()[0]
        subprocess.run(["kill", "-KILL", holder], check=True)
        assert eventually(lambda: remote.held is not None and remote.held.ended)
        with pytest.raises(Unreachable, match="its lock is lost"):
            remote.write((Write(HostPath("/one"), b"1"),))
    assert not (root / "one").exists()


def test_error_in_the_body_releases_the_lock(remote: ScriptedRemote, root: Path) -> None:
    with pytest.raises(ZeroDivisionError), remote.lock("alice"):
        _ = 1 / 0
    assert list((root / "run/lock").iterdir()) == []


# Shells


@pytest.mark.parametrize("shell", shells.SHELLS)
def test_every_action_works_under_each_shell(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("PATH", shells.path_with_shell(tmp_path / "bin", shell))
    local = LocalRemote(Host("here", Login(""), root=str(root)))
    assert local.read("echo hi; exit 3", seconds=60).exit == 3
    assert local.run(Run(("wc", "-c"), input=b"x" * 300_000)).stdout.strip() == "300000"
    assert local.run(Run(("sleep", "100"), seconds=1)).exit == 124
    local.write((Write(HostPath("/a/x"), b"1"), Write(HostPath("/b/y"), b"2", 0o700)))
    assert ((root / "a/x").read_text(), (root / "b/y").read_text()) == ("1", "2")
    for content in (b"one", b"two"):
        local.push(push_of(archive(tmp_path, content)))
        assert (root / "data/bundle/sub/file").read_bytes() == content
    with local.lock("alice"), pytest.raises(LockHeld), local.lock("bob"):
        pass
    assert leftovers(root) == []
