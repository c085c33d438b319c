"""Stations: for one run, hosts serve files to each other by an OpenSSH server of its own.

Each gets a server that knows one key and one command, made for this run alone, in a folder in
memory that goes with the line: nobody's keys, agents or authorized_keys are touched.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..core.errors import ToolError, Unreachable
from ..core.host import Host
from ..core.remote import Dials, Remote, Tunnels
from ..core.steps import Write
from ..core.words import HostPath
from ..edge.actions import BEAT_S, SILENCE_S, ScriptedRemote, Session, answer_of
from ..edge.forward import forwarded
from ..edge.hostscripts import root_line
from ..edge.one_off_keys import OneOffKey, one_off_key
from ..weights.folder import File
from ..weights.scripts import GIVE, station_script

FINISH_S = 1.5
"""Most seconds for all stations to clean up; those that hear nothing do it by themselves."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a run: one that stations prove themselves by, one that opens them."""

    host: OneOffKey = field(default_factory=one_off_key)
    client: OneOffKey = field(default_factory=one_off_key)


@dataclass(slots=True)
class Station:
    """One host's part in a run: where its keys lie, and where it serves (port 0: not at all)."""

    host: Host
    remote: ScriptedRemote
    folder: HostPath
    address: str
    path: str  # the model folder that it serves
    session: Session
    port: int = 0
    user: str = ""
    is_direct: bool = False
    why: str = ""  # it does not serve

    @property
    def alive(self) -> bool:
        return not self.session.ended


def open_station(
    host: Host, remote: ScriptedRemote, keys: Keys, folder: str, files: tuple[File, ...], *,
    serves: bool, port: int = 0,
) -> Station:  # fmt: skip
    """Make a station and return it. It serves the listed files of a model folder by their number.

    Raises Unreachable, CommandFailed.
    """
    nonce = secrets.token_hex(6)
    place = HostPath(f"/dev/shm/bringup-{nonce}")  # noqa: S108 - a folder of its own, mode 0700
    script = station_script(
        place, root_line=root_line(host.root), nonce=nonce, address=host.reached_at,
        serves=serves, port=port, silence_s=SILENCE_S,
    )  # fmt: skip
    session = remote.start(script)
    try:
        remote.write(_furniture(place, host, keys, folder, files))
        answer = answer_of(session, f"@@{nonce} ")
    except BaseException:
        session.finish(1)
        raise
    station = Station(host, remote, place, host.reached_at, folder, session)
    words = answer.split()
    if words[:1] != ["port"] or len(words) < 4:
        station.why = answer.strip() or "no answer"
        if not answer or session.ended:
            session.finish(1)
            if serves:
                return open_station(host, remote, keys, folder, files, serves=False)
            raise _no_station(host, station.why)
        return station
    station.port, station.user = int(words[1]), words[3]
    station.is_direct = words[2] == "direct"
    return station


def _no_station(host: Host, why: str) -> Unreachable:
    return Unreachable(
        f"cannot keep keys of a run on {host.name}: {why}",
        host=host.name,
        remedy="see that the login may write to /dev/shm on the host, then run again",
    )


def _furniture(
    place: HostPath, host: Host, keys: Keys, folder: str, files: tuple[File, ...]
) -> tuple[Write, ...]:
    """Return the files of a station; the one that says "go on" comes last."""
    base = f"{host.root.rstrip('/')}{folder}"
    texts = {
        "host": keys.host.private,
        "key": keys.client.private,
        "allowed": f"restrict {keys.client.public}\n".encode(),
        "known": f"station {keys.host.public}\n".encode(),
        "give": GIVE.encode(),
        "files": "".join(f"{base}/{file.name}\n" for file in files).encode(),
        "go": b"go\n",
    }
    return tuple(
        Write(HostPath(f"{place}/{name}"), text, 0o600, secret=True) for name, text in texts.items()
    )


@contextlib.contextmanager
def beating(stations: list[Station]) -> Iterator[None]:
    """Send every station a beat now and then; end them all at the end."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_S):
            for station in tuple(stations):
                station.session.beat()

    threading.Thread(target=beat, name="stations", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        ends = time.monotonic() + FINISH_S
        for station in tuple(stations):
            station.session.finish(max(0.1, ends - time.monotonic()))


@contextlib.contextmanager
def carried(source: Station, target: Remote) -> Iterator[int]:
    """Lead a port of the target's loopback through this controller to a source's server.

    Raises Unreachable where either sshd forbids it, ToolError where a remote cannot do it.
    """
    remote = source.remote
    if not isinstance(target, Tunnels) or not isinstance(remote, Dials):
        raise ToolError(f"cannot carry files from {source.host.name}: no SSH line leads there")
    with (
        forwarded(remote.dial, "127.0.0.1", source.port) as here,
        target.tunnel(to_port=here) as tunnel,
    ):
        yield tunnel.port
