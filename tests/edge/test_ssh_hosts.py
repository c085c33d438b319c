"""Whole hosts: users and sudo, full and read-only disks, cables that are cut."""

from __future__ import annotations

import hashlib
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from bringup.core.errors import CommandFailed, LockHeld, Unreachable
from bringup.core.script import Ask, compose, split
from bringup.core.steps import Push, Run, Write
from bringup.core.words import HostPath
from bringup.edge import actions
from bringup.edge.ssh import SshRemote
from tests.fleet.yard import FleetHost, Yard

from .reaching import reach
from .test_remote import eventually

pytestmark = [pytest.mark.root, pytest.mark.slow]


@pytest.fixture(scope="module")
def box(yard: Yard) -> Iterator[FleetHost]:
    """One host that the tests of this module share."""
    with yard.hosts(1) as (host,):
        yield host


@pytest.fixture
def root(box: FleetHost, yard: Yard) -> Iterator[SshRemote]:
    """The host as root sees it."""
    with reach(box.host(), yard.known_hosts) as remote:
        yield remote


@pytest.fixture
def operator(box: FleetHost, yard: Yard) -> Iterator[SshRemote]:
    """The host as a user sees it who becomes root by sudo without a password."""
    with reach(box.host(user="operator", sudo=True), yard.known_hosts) as remote:
        yield remote


@pytest.fixture
def guest(box: FleetHost, yard: Yard) -> Iterator[SshRemote]:
    """The host as a user sees it who is not to become root."""
    with reach(box.host(user="guest"), yard.known_hosts) as remote:
        yield remote


# Becoming root


def test_sudo_reads_and_runs_as_root(operator: SshRemote) -> None:
    assert operator.read("id -u; exit 3", seconds=60).stdout == "0\n"
    assert operator.read("id -u; exit 3", seconds=60).exit == 3
    assert operator.run(Run(("wc", "-c"), input=b"x" * 3_000_000)).stdout.strip() == "3000000"
    assert operator.read(f": {'x' * 200_000}\nid -u", seconds=60).stdout == "0\n"


def test_sudo_writes_what_belongs_to_root(operator: SshRemote, box: FleetHost) -> None:
    operator.write((Write(HostPath("/etc/mark"), b"new", 0o640, owner="root:adm"),))
    assert box.text("stat", "-c", "%a %U:%G", "/etc/mark") == "640 root:adm\n"


def test_sudo_pushes_and_locks(operator: SshRemote, box: FleetHost, tmp_path: Path) -> None:
    path = archive(tmp_path, b"content")
    with operator.lock("operator"):
        operator.push(push_of(path, "/opt/bundle"))
        with pytest.raises(LockHeld), operator.lock("another"):
            pass
    assert box.text("cat", "/opt/bundle/file") == "content"
    assert box.exec("test", "-e", "/run/lock/bringup", check=False).returncode == 1


def test_sudo_logs_neither_script_nor_secrets(operator: SshRemote, box: FleetHost) -> None:
    box.exec("sh", "-c", "echo 'Defaults logfile=/var/log/sudo.log' >/etc/sudoers.d/log")
    operator.read("echo something-private", seconds=60)
    logged = box.text("cat", "/var/log/sudo.log")
    assert "COMMAND" in logged
    assert "private" not in logged
    assert len(logged) < 1000


def test_command_out_of_time_is_ended_under_sudo(operator: SshRemote, box: FleetHost) -> None:
    assert operator.run(Run(("sleep", "3600.125"), seconds=1)).exit == 124
    assert eventually(lambda: "3600.125" not in box.text("ps", "-eo", "args"))


def test_command_under_sudo_ends_when_the_line_drops(yard: Yard) -> None:
    with (
        yard.hosts(1) as (host,),
        reach(host.host(user="operator", sudo=True), yard.known_hosts) as remote,
    ):
        script = "echo up; sleep 3600.375 & sleep 3600.375"
        with pytest.raises(Unreachable):
            remote.run(Run(("sh", "-c", script)), on_line=lambda line: host.kill_sshd())
        assert eventually(lambda: "3600.375" not in host.text("ps", "-eo", "args"))


def test_sudo_that_asks_for_a_password_is_said(box: FleetHost, yard: Yard) -> None:
    host = box.host(user="guest", sudo=True)
    with reach(host, yard.known_hosts) as remote:
        with pytest.raises(CommandFailed, match=r"cannot become root on h\d+: sudo asks") as caught:
            remote.read("id", seconds=60)
        assert "NOPASSWD" in caught.value.remedy
        with pytest.raises(CommandFailed, match="sudo asks for a password"), remote.lock("guest"):
            pass


def test_sudo_that_has_ended_before_its_words_come_is_said_as_well(
    box: FleetHost, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = paramiko.Channel.sendall

    def late(channel: paramiko.Channel, words: bytes) -> None:
        assert eventually(lambda: channel.closed)
        send(channel, words)

    host = box.host(user="guest", sudo=True)
    with reach(host, yard.known_hosts) as remote:
        monkeypatch.setattr(paramiko.Channel, "sendall", late)
        with pytest.raises(CommandFailed, match="sudo asks for a password"), remote.lock("guest"):
            pass


def test_missing_sudo_is_said(yard: Yard, box: FleetHost) -> None:
    box.exec("chmod", "000", "/usr/bin/sudo")
    box.exec("mv", "/usr/bin/sudo", "/usr/bin/sudo.away")
    try:
        with (
            reach(box.host(user="operator", sudo=True), yard.known_hosts) as remote,
            pytest.raises(CommandFailed, match="sudo is not installed there"),
        ):
            remote.read("id", seconds=60)
    finally:
        box.exec("mv", "/usr/bin/sudo.away", "/usr/bin/sudo")
        box.exec("chmod", "4755", "/usr/bin/sudo")


# Disks and rights


def archive(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "file").write_bytes(content)
    with tarfile.open(tmp_path / "bundle.tar", "w") as tar:
        tar.add(tmp_path / "file", "file")
    return tmp_path / "bundle.tar"


def push_of(path: Path, to: str) -> Push:
    return Push(HostPath(to), str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def test_unwritable_folder_is_said(guest: SshRemote) -> None:
    with pytest.raises(CommandFailed, match=r"/etc/mine .*the login may not write") as caught:
        guest.write((Write(HostPath("/etc/mine"), b"x"),))
    assert "sudo: true" in caught.value.remedy
    assert "Permission denied" in caught.value.said


def test_full_disk_keeps_the_old_file_and_is_said(root: SshRemote, box: FleetHost) -> None:
    root.write((Write(HostPath("/small/one"), b"old"),))
    box.fill("/small")
    try:
        with pytest.raises(CommandFailed, match=r"/small/one .*the disk is full") as caught:
            root.write((Write(HostPath("/small/one"), b"x" * 50_000),))
        assert "df -h /small" in caught.value.remedy
        assert box.text("cat", "/small/one") == "old"
        assert box.text("find", "/small", "-name", ".bringup*") == ""
    finally:
        box.exec("rm", "-f", "/small/.fill")


def test_full_disk_fails_the_file_on_it_though_another_comes_first(
    root: SshRemote, box: FleetHost
) -> None:
    box.fill("/small")
    files = (Write(HostPath("/etc/first"), b"1"), Write(HostPath("/small/two"), b"x" * 50_000))
    try:
        with pytest.raises(CommandFailed, match=r"cannot write /small/two .*the disk is full"):
            root.write(files)
        assert box.exec("test", "-e", "/etc/first", check=False).returncode == 1
    finally:
        box.exec("rm", "-f", "/small/.fill")


def test_full_disk_keeps_the_old_bundle(root: SshRemote, box: FleetHost, tmp_path: Path) -> None:
    root.push(push_of(archive(tmp_path, b"old"), "/small/bundle"))
    with pytest.raises(CommandFailed, match=r"/small/bundle .*the disk is full"):
        root.push(push_of(archive(tmp_path, b"x" * 2_000_000), "/small/bundle"))
    assert box.text("cat", "/small/bundle/file") == "old"
    assert box.text("find", "/small", "-name", "*bringup*") == ""


def test_read_only_disk_is_said(root: SshRemote, box: FleetHost) -> None:
    box.exec("mount", "-o", "remount,ro", "/small")
    try:
        with pytest.raises(CommandFailed, match="the file system is read-only"):
            root.write((Write(HostPath("/small/one"), b"x"),))
    finally:
        box.exec("mount", "-o", "remount,rw", "/small")


def test_mount_point_is_not_replaced(root: SshRemote, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="it is a mount point"):
        root.push(push_of(archive(tmp_path, b"x"), "/small"))


# Reading changes nothing


def test_reading_leaves_every_byte_as_it_was(root: SshRemote, box: FleetHost) -> None:
    folders = ("etc", "root", "tmp", "run/lock", "home")
    before = box.tree_digest(*folders)
    script = compose([Ask("files", "ls -l /etc"), Ask("gone", "no-such-tool", 1)], nonce="n1")
    answer = split(root.read(script, seconds=60).stdout, nonce="n1")
    assert answer.complete
    assert box.tree_digest(*folders) == before


def test_noise_of_a_login_shell_is_no_answer(box: FleetHost, yard: Yard) -> None:
    box.exec("sh", "-c", "usermod -s /bin/bash guest; echo 'echo held none busy' >~guest/.bashrc")
    with reach(box.host(user="guest"), yard.known_hosts) as remote:
        noisy = remote.read("echo x", seconds=60).stdout
        assert noisy == "held none busy\nx\n"
        with remote.lock("guest"), pytest.raises(LockHeld), remote.lock("another"):
            pass


# Cables

LONG = Run(("sh", "-c", "echo up; exec sleep 600"), seconds=900)
"""A command that says when it has begun; nobody waits for its end."""


@pytest.fixture
def lone(yard: Yard) -> Iterator[FleetHost]:
    """A host of a test's own."""
    with yard.hosts(1) as (host,):
        yield host


def test_host_without_a_cable_gives_no_answer(lone: FleetHost, yard: Yard) -> None:
    lone.cut()
    with (
        reach(lone.host(connect_s=1.0), yard.known_hosts) as remote,
        pytest.raises(Unreachable, match=r"no answer within 1 s|no route"),
    ):
        remote.read("true", seconds=60)


def test_cable_cut_midway_is_noticed_and_the_next_run_goes_on(lone: FleetHost, yard: Yard) -> None:
    with reach(lone.host(keepalive_s=1.5), yard.known_hosts) as remote:
        with pytest.raises(Unreachable, match="line dropped"):
            remote.run(LONG, on_line=lambda _: lone.cut())
        lone.mend()
        lone.await_sshd()
        assert remote.read("echo back", seconds=60).stdout == "back\n"


def test_lock_is_let_go_on_a_host_that_hears_nothing(
    lone: FleetHost, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "BEAT_S", 0.5)
    monkeypatch.setattr(actions, "SILENCE_S", 6)
    with (
        reach(lone.host(keepalive_s=60.0), yard.known_hosts) as remote,
        remote.lock("the one that loses its cable"),
    ):
        time.sleep(8)
        assert lone.exec("test", "-e", "/run/lock/bringup", check=False).returncode == 0
        lone.cut()
        assert eventually(
            lambda: lone.exec("test", "-e", "/run/lock/bringup", check=False).returncode == 1
        )
        lone.mend()


def test_power_cut_midway_is_a_dropped_line(lone: FleetHost, yard: Yard) -> None:
    with (
        reach(lone.host(keepalive_s=1.5), yard.known_hosts) as remote,
        pytest.raises(Unreachable, match="line dropped"),
    ):
        remote.run(LONG, on_line=lambda _: lone.power_off())
