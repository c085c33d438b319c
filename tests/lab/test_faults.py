"""Sick practice hosts are sick in the described way."""

from __future__ import annotations

import subprocess
import time

import pytest

from bringup.lab import fleet

from .conftest import Ssh

pytestmark = pytest.mark.xdist_group("lab-faults")


@pytest.fixture
def ssh(sick: fleet.LabStatus) -> Ssh:
    return Ssh(sick.folder)


def test_the_host_that_is_well_answers(ssh: Ssh) -> None:
    assert ssh("plain-01", "echo well").stdout == b"well\n"


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("refuse-01", b"Connection refused"),
        ("mute-01", b"Connection timed out during banner exchange"),
    ],
)
def test_a_host_without_login_says_why(ssh: Ssh, host: str, said: bytes) -> None:
    done = ssh(host, "true", "-o", "ConnectTimeout=2")
    assert done.returncode == 255
    assert said in done.stderr


def test_a_stalled_login_lasts_until_the_client_gives_up(ssh: Ssh) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(ssh.words("stall-01", "true"), check=False, timeout=3, capture_output=True)


def test_a_line_is_cut_midway(ssh: Ssh) -> None:
    done = ssh("drop-01", "head -c 300000 /dev/zero")
    assert done.returncode == 255
    assert 0 < len(done.stdout) <= 100_000


def test_a_short_answer_comes_through_before_the_cut(ssh: Ssh) -> None:
    assert ssh("drop-01", "echo short").stdout == b"short\n"


def test_a_frozen_line_is_noticed_by_keepalive_alone(ssh: Ssh) -> None:
    options = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2")
    done = ssh("freeze-01", "head -c 300000 /dev/zero", *options)
    assert done.returncode == 255
    assert b"Timeout, server 127.0.0.1 not responding" in done.stderr


def test_a_slow_host_answers_late(ssh: Ssh) -> None:
    begun = time.monotonic()
    assert ssh("slow-01", "echo late").stdout == b"late\n"
    assert time.monotonic() - begun > 0.7


def test_a_tool_that_hangs_ends_with_the_limit_set_on_the_host(ssh: Ssh) -> None:
    assert ssh("asks-01", "timeout 1 lspci").returncode == 124


def test_a_missing_tool_is_not_found(ssh: Ssh) -> None:
    assert ssh("asks-01", "lsmod").returncode == 127


def test_a_tool_says_what_is_described(ssh: Ssh) -> None:
    done = ssh("asks-01", "dmesg")
    assert (done.returncode, done.stdout) == (
        1,
        b"dmesg: read kernel buffer failed: Operation not permitted\n",
    )


def test_sudo_that_wants_a_password_refuses(ssh: Ssh) -> None:
    done = ssh("asks-01", "sudo -n true")
    assert (done.returncode, done.stderr) == (1, b"sudo: a password is required\n")


def test_passwordless_sudo_runs_the_command(ssh: Ssh) -> None:
    assert ssh("plain-01", "sudo -n sh -c 'echo done'").stdout == b"done\n"


def test_a_read_only_folder_takes_no_file(ssh: Ssh) -> None:
    assert ssh("asks-01", "cd ../.. && mkdir opt/new").returncode != 0
