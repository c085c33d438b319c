"""The narrow seam to a host. Check mode gets a `Reader`, which has no way to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from .steps import Push, Run, Write


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended. Output is text, undecodable bytes replaced."""

    exit: int
    stdout: str
    stderr: str = ""
    seconds: float = 0.0

    def tail(self, lines: int = 10) -> str:
        """Return the last lines of what it said, standard error last."""
        return "\n".join((self.stdout + self.stderr).strip().splitlines()[-lines:])


class Reader(Protocol):
    """May look, cannot touch."""

    def read(self, script: str, *, seconds: float) -> Result:
        """Run a script that only reads (see core.script.compose). One round trip.

        Raises Unreachable when the connection cannot be made or is lost.
        """
        ...


class Remote(Reader, Protocol):
    """May also change the host. Paths in actions gain the host's ``root:``."""

    def run(self, action: Run, *, on_line: Callable[[str], None] | None = None) -> Result:
        """Run one command; its exit code is data. Lines may be followed as they come."""
        ...

    def write(self, files: tuple[Write, ...], *, then: str = "", seconds: float = 0.0) -> Result:
        """Write files atomically, all in one streamed trip; raises CommandFailed.

        `then` is a script that only reads; it runs behind the writing, in the same trip, and what
        it says is returned. `seconds` is its limit.
        """
        ...

    def push(self, action: Push, *, on_bytes: Callable[[int], None] | None = None) -> None:
        """Stream an archive, verify its sum, swap it in by rename."""
        ...

    def lock(self, details: str) -> AbstractContextManager[None]:
        """Hold the host's lock for as long as the connection lives; raises LockHeld."""
        ...


class Tunnel(Protocol):
    """An open way from a port of the host's loopback to this machine."""

    @property
    def port(self) -> int: ...

    @property
    def alive(self) -> bool:
        """Whether the line that carries it still stands; a tunnel is not made anew by itself."""
        ...


@runtime_checkable
class Tunnels(Protocol):
    """A remote that can lead connections made on the host back to the controller (``ssh -R``)."""

    def tunnel(self, *, to_port: int, host_port: int = 0) -> AbstractContextManager[Tunnel]:
        """Listen on the host's 127.0.0.1 and carry each connection to this machine's `to_port`.

        With `host_port` 0 the host chooses its port. Raises Unreachable when the host refuses.
        """
        ...


@dataclass(frozen=True, slots=True)
class Trusted:
    """By what a host's key was accepted: "pinned", "certified", "known" or "first use"."""

    by: str
    fingerprint: str


@runtime_checkable
class Trusts(Protocol):
    """A remote that checked a key before it said a word."""

    def trusted(self) -> Trusted | None:
        """Return by what the key was accepted; None before the first connection."""
        ...


@runtime_checkable
class Dials(Protocol):
    """A remote that can open connections from the host's place (``ssh -W``)."""

    def dial(self, host: str, port: int, seconds: float) -> Any:  # noqa: ANN401 - a socket
        """Return a stream to a place as the host sees it; it serves as `edge.http.Opener`.

        Raises OSError when nobody answers there, Unreachable when the host does not forward.
        """
        ...


@dataclass(frozen=True, slots=True)
class Looking:
    """A remote that can only read: all that planning and check mode ever hold."""

    remote: Reader

    def read(self, script: str, *, seconds: float) -> Result:
        """Run a script that only reads."""
        return self.remote.read(script, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a run cost: connections, commands, bytes each way, and round trips that it waited for.

    A new connection is four round trips (TCP, versions, two of the key exchange). A login is one,
    with the first command in it, else two; a command is one, and one more where no channel was
    open for it. Bytes of a stream are sent ahead and cost no more.
    """

    connections: int = 0
    commands: int = 0
    sent: int = 0
    received: int = 0
    round_trips: int = 0


class Fleet(Protocol):
    """Hands out remotes; owns every connection and closes them all."""

    def remote(self, name: str) -> Remote: ...

    def traffic(self) -> dict[str, Traffic]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Lines:
    """Cuts a stream of text into lines: feed pieces, get the whole lines."""

    rest: str = field(default="")

    def feed(self, piece: str) -> Iterator[str]:
        """Yield every line that the piece completes."""
        *whole, self.rest = (self.rest + piece).split("\n")
        yield from whole
