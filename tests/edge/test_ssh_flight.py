"""Login and first command in one flight: the same answers, fewer round trips, a way back.

A release of paramiko that changes a name which it keeps to itself fails here.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

from bringup.core.errors import Unreachable
from bringup.core.steps import Run
from bringup.edge import ssh_flight
from bringup.edge.ssh import SshRemote
from bringup.edge.ssh_socket import dial
from tests.fleet import keys
from tests.fleet.fixtures import MakeSshd
from tests.fleet.sshd import Sshd

from . import lame
from .reaching import reach

FAR_S = 0.2
"""Round-trip time of the slow line, in seconds."""

TRIES = 8
"""How often a time is taken until it is short enough."""


@contextmanager
def far(sshd: Sshd, tmp_path: Path, *, one_flight: bool) -> Iterator[SshRemote]:
    """Reach a server over a slow line."""
    with lame.serving(lame.slow(sshd.port, FAR_S / 2)) as server:
        host = sshd.host(port=server.port, host_key=keys.fingerprint(sshd.host_key))
        with reach(host, tmp_path / "known", one_flight=one_flight) as remote:
            yield remote


def first_answer_s(sshd: Sshd, tmp_path: Path, *, one_flight: bool) -> float:
    with far(sshd, tmp_path, one_flight=one_flight) as remote:
        began = monotonic()
        assert remote.read("echo ready", seconds=60).stdout == "ready\n"
        return monotonic() - began


def least(measure: Callable[[], float], bound: float) -> float:
    """Return the least of some tries, the first below a bound at once.

    The line's own delays are in every one of them; a busy machine adds to some.
    """
    found = [measure()]
    while found[-1] >= bound and len(found) < TRIES:
        found.append(measure())
    return min(found)


def test_first_answer_comes_two_round_trips_earlier(sshd: Sshd, tmp_path: Path) -> None:
    sooner = first_answer_s(sshd, tmp_path, one_flight=False) - 2 * FAR_S
    assert least(lambda: first_answer_s(sshd, tmp_path, one_flight=True), sooner) < sooner


@pytest.mark.parametrize(("one_flight", "trips"), [(True, 5), (False, 8)])
def test_round_trips_that_are_counted_are_those_that_are_waited_for(
    sshd: Sshd, tmp_path: Path, one_flight: bool, trips: int
) -> None:
    def waited() -> float:
        with far(sshd, tmp_path, one_flight=one_flight) as remote:
            began = monotonic()
            remote.read("true", seconds=60)
            took = monotonic() - began
            assert remote.traffic().round_trips == trips
        return took / FAR_S + 1  # TCP's own ends at the near side of the line

    assert trips - 1 < least(waited, trips + 4) < trips + 4


def next_answer_s(sshd: Sshd, tmp_path: Path, *, one_flight: bool) -> float:
    """Return the least time of a command on a line that had a moment's rest."""
    with far(sshd, tmp_path, one_flight=one_flight) as remote:
        remote.read("true", seconds=60)
        found = []
        for _ in range(3):
            sleep(1.5 * FAR_S)
            found.append(remote.read("true", seconds=60).seconds)
        return min(found)


def test_next_answer_comes_one_round_trip_earlier(sshd: Sshd, tmp_path: Path) -> None:
    sooner = next_answer_s(sshd, tmp_path, one_flight=False) - FAR_S / 2
    assert least(lambda: next_answer_s(sshd, tmp_path, one_flight=True), sooner) < sooner


def test_socket_holds_no_packet_back_and_notices_a_dead_peer(sshd: Sshd) -> None:
    with dial(
        "h1", sshd.address, sshd.port, seconds=60, keepalive_s=15, stop=threading.Event()
    ) as line:
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 45_000


def test_first_command_is_never_sent_twice_however_short_it_is(sshd: Sshd) -> None:
    for _ in range(15):
        with reach(sshd.host(), sshd.known_hosts) as remote:
            remote.read(":", seconds=60)
            assert remote.traffic().connections == 1


@pytest.mark.parametrize("one_flight", [True, False])
def test_first_command_gets_its_input_and_its_exit_code(sshd: Sshd, one_flight: bool) -> None:
    with reach(sshd.host(), sshd.known_hosts, one_flight=one_flight) as remote:
        assert remote.run(Run(("wc", "-c"), input=b"x" * 3_000_000)).stdout.strip() == "3000000"
        assert remote.read("exit 3", seconds=60).exit == 3
        assert remote.traffic().connections == 1


@pytest.mark.parametrize("one_flight", [True, False])
def test_refused_key_is_said_in_the_same_words(
    sshd: Sshd, tmp_path: Path, one_flight: bool
) -> None:
    key = keys.make_key(tmp_path / "stranger")
    with (
        reach(sshd.host(key_file=str(key)), sshd.known_hosts, one_flight=one_flight) as remote,
        pytest.raises(Unreachable, match=f"the server refused {key}"),
    ):
        remote.read("true", seconds=60)


def test_server_without_sessions_is_said_after_the_plain_order(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("MaxSessions=0")
    with (
        reach(sshd.host(), sshd.known_hosts) as remote,
        pytest.raises(Unreachable, match="opens no session"),
    ):
        remote.read("true", seconds=60)
    assert remote.traffic().connections == 2


def test_server_with_one_session_serves_one_command_after_another(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("MaxSessions=1")
    with reach(sshd.host(), sshd.known_hosts) as remote:
        for number in range(5):
            assert remote.read(f"echo {number}", seconds=60).stdout == f"{number}\n"
        assert remote.traffic().connections == 1


def test_forced_command_is_what_runs(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("ForceCommand=echo forced")
    with reach(sshd.host(), sshd.known_hosts) as remote:
        assert remote.read("echo mine", seconds=60).stdout == "forced\n"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2", True),
        ("SSH-2.0-OpenSSH_10.0", True),
        ("SSH-2.0-AsyncSSH_2.24.1", False),
        ("SSH-2.0-dropbear_2022.83", False),
    ],
)
def test_only_openssh_is_taken_at_its_word(version: str, expected: bool) -> None:
    class Transport:
        remote_version = version

    assert ssh_flight.can_fly(Transport()) is expected  # type: ignore[arg-type]


def test_fabric_surface_runs_on_the_same_line(sshd: Sshd) -> None:
    with reach(sshd.host(), sshd.known_hosts) as remote:
        remote.read("true", seconds=60)
        done = remote.connection.run("echo by fabric; exit 3", warn=True)
        assert (done.stdout, done.exited) == ("by fabric\n", 3)
        with pytest.raises(ValueError, match="env="):
            remote.connection.run("true", env={"A": "x; echo injected"})
        assert remote.traffic().connections == 1
