"""Every way in which a line can fail is told apart, in bounded time, and says what to do."""

from __future__ import annotations

import getpass
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bringup.core.errors import Interrupted, ToolError, Unreachable
from bringup.core.host import Host
from bringup.core.steps import Run, Write
from bringup.core.words import HostPath
from bringup.edge import ssh_socket
from bringup.edge.ssh import SshFleet, SshOptions, SshRemote
from tests.fleet import keys
from tests.fleet.fixtures import MakeSshd
from tests.fleet.sshd import Sshd, free_port

from . import lame
from .reaching import ask, reach
from .test_remote import eventually, mark, runs

__all__ = ["mark"]

AT_ONCE_S = 30
"""Two seconds are the promise; a busy test machine gets more."""

QUICK = 1.0
"""Seconds for a stage of a connection that is to time out."""


def at(sshd: Sshd, port: int, connect_s: float = 10.0) -> Host:
    """Return the host behind another port."""
    pin = keys.fingerprint(sshd.host_key)
    return sshd.host(port=port, host_key=pin, connect_s=connect_s)


@contextmanager
def proxied(sshd: Sshd, tmp_path: Path) -> Iterator[tuple[lame.Lame, SshRemote]]:
    """Reach a server by way of a line that the test can drop."""
    with (
        lame.serving(lame.relay(sshd.port)) as server,
        reach(at(sshd, server.port), tmp_path / "known") as remote,
    ):
        yield server, remote


def test_refused_connection_is_said(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(
        Unreachable, match=r"cannot reach h1 at 127\.0\.0\.1 port \d+: connection ref"
    ):
        ask(sshd.host(port=free_port()), tmp_path / "known")


def test_name_that_does_not_resolve_is_said(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"no-such-host\.invalid does not resolve"):
        ask(sshd.host(address="no-such-host.invalid"), tmp_path / "known")


def test_network_without_a_route_is_said(sshd: Sshd) -> None:
    error = OSError(113, "No route to host")
    fault = ssh_socket._unreachable("h1", "10.0.0.1 port 22", error, 10)
    assert "no route (No route to host)" in fault.message


def test_silent_port_is_told_from_a_dead_host(sshd: Sshd, tmp_path: Path) -> None:
    with lame.serving(lame.silent) as server, pytest.raises(Unreachable) as caught:
        ask(at(sshd, server.port, connect_s=QUICK), tmp_path / "known")
    assert "takes the connection but sends no SSH version" in caught.value.message


def test_port_of_something_else_is_said(sshd: Sshd, tmp_path: Path) -> None:
    with (
        lame.serving(lame.http) as server,
        pytest.raises(Unreachable, match="is not SSH") as caught,
    ):
        ask(at(sshd, server.port), tmp_path / "known")
    assert "HTTP/1.1" in caught.value.said


def test_a_web_server_that_closes_early_is_not_taken_for_a_full_sshd(
    sshd: Sshd, tmp_path: Path
) -> None:
    with (
        lame.serving(lame.page) as server,
        pytest.raises(Unreachable, match="is not SSH") as caught,
    ):
        ask(at(sshd, server.port), tmp_path / "known")
    assert "<!DOCTYPE HTML>" in caught.value.said


def test_stall_in_the_key_exchange_is_said(sshd: Sshd, tmp_path: Path) -> None:
    with lame.serving(lame.stalling) as server, pytest.raises(Unreachable) as caught:
        ask(at(sshd, server.port, connect_s=QUICK), tmp_path / "known")
    assert "in the middle of the key exchange" in caught.value.message
    assert "OpenSSH_9.9" in caught.value.said


def test_server_that_keeps_closing_is_tried_again_and_names_max_startups(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bringup.edge.ssh_lines.PAUSE_S", 0.01)
    with (
        lame.serving(lame.closing) as server,
        pytest.raises(Unreachable, match="4 times") as caught,
    ):
        ask(at(sshd, server.port), tmp_path / "known")
    assert "MaxStartups" in caught.value.remedy
    assert server.served == 4


def test_server_that_is_full_for_a_moment_is_reached_after_all(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bringup.edge.ssh_lines.PAUSE_S", 0.01)
    with lame.serving(lame.relay(sshd.port, drop_first=2)) as server:
        assert ask(at(sshd, server.port), tmp_path / "known") == "ready\n"


@pytest.mark.parametrize(
    "option",
    ["KexAlgorithms=sntrup761x25519-sha512@openssh.com", "Ciphers=chacha20-poly1305@openssh.com"],
)
def test_no_method_in_common_names_ours(make_sshd: MakeSshd, option: str) -> None:
    sshd = make_sshd(option)
    with pytest.raises(Unreachable, match=r"cannot agree with h1 .* on how to encrypt") as caught:
        ask(sshd.host(), sshd.known_hosts)
    assert "curve25519" in caught.value.said
    assert "OpenSSH" in caught.value.said


def test_hang_at_the_login_is_said(make_sshd: MakeSshd) -> None:
    user = f"AuthorizedKeysCommandUser={getpass.getuser()}"
    sshd = make_sshd("AuthorizedKeysCommand=/bin/sleep 100", user, "AuthorizedKeysFile=none")
    with pytest.raises(Unreachable, match=r"cannot log in to h1 .*no answer within 6 s"):
        ask(sshd.host(connect_s=3.0), sshd.known_hosts)  # keys are agreed on before: more time


def test_server_without_sessions_is_said(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("MaxSessions=0")
    with pytest.raises(Unreachable, match="opens no session") as caught:
        ask(sshd.host(), sshd.known_hosts)
    assert "MaxSessions" in caught.value.remedy


# In the middle of an answer


def test_line_that_drops_midway_is_said_with_what_had_come(sshd: Sshd, tmp_path: Path) -> None:
    with (
        lame.serving(lame.relay(sshd.port, limit=500_000)) as server,
        reach(at(sshd, server.port), tmp_path / "known") as remote,
        pytest.raises(Unreachable, match=r"line dropped .*[1-9]\d* bytes .* had come") as caught,
    ):
        remote.read("head -c 3000000 /dev/zero", seconds=60)
    assert caught.value.host == "h1"


def test_crash_of_the_server_midway_is_a_dropped_line(make_sshd: MakeSshd) -> None:
    sshd = make_sshd()
    with reach(sshd.host(), sshd.known_hosts) as remote:
        script = "echo up; exec sleep 600"
        with pytest.raises(Unreachable, match="line dropped"):
            remote.run(Run(("sh", "-c", script), seconds=900), on_line=lambda _: sshd.kill())


def test_next_call_makes_a_new_line(sshd: Sshd, tmp_path: Path) -> None:
    with proxied(sshd, tmp_path) as (server, remote):
        remote.read("true", seconds=60)
        server.drop()
        assert eventually(lambda: not remote.line().alive or remote.traffic().connections == 2)
        assert remote.read("echo back", seconds=60).stdout == "back\n"
        assert remote.traffic().connections == 2


def test_command_that_was_running_ends_when_the_line_drops(
    sshd: Sshd, tmp_path: Path, mark: str
) -> None:
    with proxied(sshd, tmp_path) as (server, remote):

        def drop(line: str) -> None:
            assert runs(f"sleep {mark}")
            server.drop()

        script = f"sleep {mark} & echo up; sleep {mark}"
        with pytest.raises(Unreachable):
            remote.run(Run(("sh", "-c", script), seconds=300), on_line=drop)
    assert eventually(lambda: not runs(f"sleep {mark}"))


def test_server_that_hangs_midway_is_given_up_on(
    make_sshd: MakeSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bringup.edge.ssh_exec.GRACE_S", 1.0)
    sshd = make_sshd()
    with reach(sshd.host(), sshd.known_hosts) as remote:
        remote.read("true", seconds=60)
        sshd.pause()
        monkeypatch.setattr("bringup.edge.ssh_exec.OPEN_S", 1.0)
        with pytest.raises(Unreachable):
            remote.read("echo never", seconds=1)
        sshd.resume()


def test_line_that_falls_silent_is_ended_by_keepalive(make_sshd: MakeSshd) -> None:
    sshd = make_sshd()
    with reach(sshd.host(keepalive_s=1.0), sshd.known_hosts) as remote:
        remote.read("true", seconds=60)
        sshd.pause()
        with pytest.raises(Unreachable):
            remote.read("echo never", seconds=300)
        sshd.resume()


def test_quiet_command_outlives_many_keepalives(sshd: Sshd) -> None:
    with reach(sshd.host(keepalive_s=0.5), sshd.known_hosts) as remote:
        assert remote.read("sleep 3; echo done", seconds=60).stdout == "done\n"


# Writing over a line that breaks


def test_write_whose_line_drops_leaves_the_old_file(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old")
    big = Write(HostPath(f"{tmp_path}/one"), b"x" * 30_000_000)
    with (
        lame.serving(lame.relay(sshd.port, limit_up=10_000_000)) as server,
        reach(at(sshd, server.port), tmp_path / "known") as remote,
        pytest.raises(Unreachable),
    ):
        remote.write((big,))
    assert (tmp_path / "one").read_text() == "old"
    assert eventually(lambda: not list(tmp_path.glob(".bringup.*")))


# Controllers that vanish


@contextmanager
def controller(text: str, sshd: Sshd, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that reaches a server; it is killed at the end, if it still runs."""
    login = (sshd.address, str(sshd.port), sshd.user, str(sshd.key), str(sshd.known_hosts))
    program = [sys.executable, "-c", text, *login, *words]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


HOLD = """
import sys
from pathlib import Path
from bringup.core.host import Host, Login
from bringup.core.steps import Run
from bringup.edge.ssh import SshFleet, SshOptions
address, port, user, key, known, root, mark = sys.argv[1:]
host = Host("h1", Login(address, port=int(port), user=user, key_file=key), root=root)
options = SshOptions(known_hosts=Path(known), use_ssh_config=False)
remote = SshFleet({"h1": host}, options).remote("h1")
with remote.lock("the one that dies"):
    print("held", flush=True)
    remote.run(Run(("sleep", mark), seconds=3000))
"""


def test_killed_controller_leaves_neither_lock_nor_command(
    sshd: Sshd, tmp_path: Path, mark: str
) -> None:
    (tmp_path / "run/lock").mkdir(parents=True)
    with controller(HOLD, sshd, str(tmp_path), mark) as process:
        assert line_of(process) == b"held\n"
        assert eventually(lambda: runs(f"^sleep {mark}"))
    assert eventually(lambda: not runs(f"^sleep {mark}"))
    assert eventually(lambda: not list((tmp_path / "run/lock").iterdir()))


MANY = """
import sys
from pathlib import Path
from bringup.core.host import Host, Login
from bringup.core.steps import Run
from bringup.edge.pool import each
from bringup.edge.ssh import SshFleet, SshOptions
address, port, user, key, known, root, mark = sys.argv[1:]
login = Login(address, port=int(port), user=user, key_file=key)
hosts = {f"h{n}": Host(f"h{n}", login, root=f"{root}/h{n}") for n in range(8)}
options = SshOptions(known_hosts=Path(known), use_ssh_config=False)

def work(name):
    remote = fleet.remote(name)
    with remote.lock(name):
        remote.run(Run(("sleep", mark), seconds=3000))

try:
    with SshFleet(hosts, options) as fleet:
        list(each(hosts, work, limit=4))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_at_once_and_leaves_neither_lock_nor_command(
    sshd: Sshd, tmp_path: Path, mark: str
) -> None:
    for number in range(8):
        (tmp_path / f"h{number}/run/lock").mkdir(parents=True)
    with controller(MANY, sshd, str(tmp_path), mark) as process:
        assert eventually(lambda: len(list(tmp_path.glob("*/run/lock/bringup/holder"))) == 4)
        assert eventually(lambda: runs(f"^sleep {mark}"))
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert line_of(process) == b"interrupted\n"
        process.wait(AT_ONCE_S)
        assert time.monotonic() - began < AT_ONCE_S
    assert eventually(lambda: not runs(f"^sleep {mark}"))
    assert eventually(lambda: not list(tmp_path.glob("*/run/lock/*")))


WRITE = """
import itertools, sys
from pathlib import Path
from bringup.core.host import Host, Login
from bringup.core.steps import Write
from bringup.core.words import HostPath
from bringup.edge.ssh import SshFleet, SshOptions
address, port, user, key, known, root = sys.argv[1:]
host = Host("h1", Login(address, port=int(port), user=user, key_file=key), root=root)
options = SshOptions(known_hosts=Path(known), use_ssh_config=False)
remote = SshFleet({"h1": host}, options).remote("h1")
for content in itertools.cycle((b"A" * 300_000, b"B" * 300_000)):
    remote.write(tuple(Write(HostPath(f"/etc/{name}"), content) for name in "abc"))
    print("written", flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.02, 0.04, 0.08])
def test_controller_killed_while_it_writes_leaves_whole_files(
    sshd: Sshd, tmp_path: Path, delay_s: float
) -> None:
    with controller(WRITE, sshd, str(tmp_path)) as process:
        assert line_of(process) == b"written\n"
        time.sleep(delay_s)
    assert eventually(lambda: not list((tmp_path / "etc").glob(".bringup.*")))
    for name in "abc":
        assert (tmp_path / "etc" / name).read_bytes() in (b"A" * 300_000, b"B" * 300_000)


# The end of a run


def test_close_wakes_whoever_waits_at_once(sshd: Sshd, mark: str) -> None:
    fleet = SshFleet(
        {"h1": sshd.host()}, SshOptions(known_hosts=sshd.known_hosts, use_ssh_config=False)
    )
    caught: list[BaseException] = []

    def work() -> None:
        try:
            fleet.remote("h1").run(Run(("sleep", mark), seconds=300))
        except Interrupted as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert eventually(lambda: runs(f"^sleep {mark}"))
    began = time.monotonic()
    fleet.close()
    thread.join(2 * AT_ONCE_S)
    assert time.monotonic() - began < AT_ONCE_S
    assert len(caught) == 1
    assert eventually(lambda: not runs(f"^sleep {mark}"))


def test_close_ends_connections_that_are_being_made(sshd: Sshd, tmp_path: Path) -> None:
    options = SshOptions(known_hosts=tmp_path / "known", use_ssh_config=False)
    with lame.serving(lame.silent) as server:
        fleet = SshFleet({"h1": at(sshd, server.port, connect_s=100.0)}, options)
        caught: list[BaseException] = []

        def work() -> None:
            try:
                fleet.remote("h1").read("true", seconds=60)
            except Interrupted as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        assert eventually(lambda: server.served == 1)
        fleet.close()
        thread.join(2 * AT_ONCE_S)
        assert len(caught) == 1


def test_limit_of_the_run_shortens_a_command_on_the_host(sshd: Sshd, mark: str) -> None:
    options = SshOptions(known_hosts=sshd.known_hosts, use_ssh_config=False, run_s=600.0)
    with SshFleet({"h1": sshd.host()}, options) as fleet:
        remote = fleet.remote("h1")
        remote.read("true", seconds=60)
        fleet.began = time.monotonic() - 592
        assert remote.run(Run(("sleep", mark), seconds=300)).exit == 124
        with pytest.raises(ToolError, match=r"the run's limit of 600 s is used up"):
            remote.read("true", seconds=60)
    assert eventually(lambda: not runs(f"sleep {mark}"))


def test_host_that_is_not_in_the_fleet_is_an_error() -> None:
    with SshFleet({}) as fleet, pytest.raises(ToolError, match="cannot find the host 'h9'"):
        fleet.remote("h9")
