"""TCP to a host on a socket of our own: no Nagle, prompt ACKs, dead peers noticed, bytes counted.

paramiko sets no socket option: Nagle's algorithm and delayed ACKs cost 45 ms a command at any
distance (docs/ssh.md).
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Protocol

from ..core.errors import Unreachable

SLICE_S = 0.1
"""How soon a wait notices that the run was stopped."""


READ_AHEAD = 16 * 1024
"""Bytes read at once where paramiko asks for fewer."""


LOOK_S = 0.5
"""How often a silent line is looked after: whether it was closed, and for its sign of life."""


class ByteStream(Protocol):
    """What paramiko needs of a socket: a TCP socket, a forwarded channel, a proxy command."""

    def recv(self, size: int, /) -> bytes: ...

    def send(self, data: bytes, /) -> int: ...

    def settimeout(self, seconds: float, /) -> None: ...

    def close(self) -> None: ...


OPENING_BYTES = 200
"""How much is kept of what the other side says first, to tell what it is."""


class MeteredStream:
    """A byte stream that counts, remembers when it last heard something, and acknowledges at once.

    TCP_QUICKACK does not stick, so it is set again after each read (Linux only): the far side's
    own Nagle delay ends with our ACK.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._tcp = stream if isinstance(stream, socket.socket) else None
        self._quick_ack = getattr(socket, "TCP_QUICKACK", None) if self._tcp else None
        self.sent = 0
        self.received = 0
        self.heard_at = time.monotonic()
        self.trouble = ""
        self.opening = b""
        self._ahead = memoryview(b"")
        self._closed = False  # read by paramiko when it waits for its thread to end

    def recv(self, size: int) -> bytes:
        """Return at most `size` bytes; paramiko takes a packet in pieces."""
        if not self._ahead:
            self._ahead = memoryview(self._read(max(size, READ_AHEAD)))
        piece, self._ahead = bytes(self._ahead[:size]), self._ahead[size:]
        return piece

    def _read(self, size: int) -> bytes:
        try:
            data = self._stream.recv(size)
        except OSError as error:
            if self._closed:
                return b""
            if error.errno is not None:  # a poll that timed out has no number
                self.trouble = error.strerror or str(error)
            raise
        if self._tcp is not None and self._quick_ack is not None:
            self._tcp.setsockopt(socket.IPPROTO_TCP, self._quick_ack, 1)
        if not self.received:
            self.opening = data[:OPENING_BYTES]
        self.received += len(data)
        self.heard_at = time.monotonic()
        return data

    def send(self, data: bytes) -> int:
        count = self._stream.send(data)
        self.sent += count
        return count

    def settimeout(self, seconds: float) -> None:
        """paramiko looks ten times a second whether it was closed; `abort` wakes it by itself."""
        self._stream.settimeout(max(seconds, LOOK_S))

    def abort(self) -> None:
        """End the stream for good; wakes whoever waits on it, in any thread."""
        if self._tcp is None:
            self.close()
            return
        try:
            self._tcp.shutdown(socket.SHUT_RDWR)
        except OSError:
            self._tcp.close()

    def close(self) -> None:
        self._closed = True
        with suppress(OSError, EOFError):  # a channel whose own line is gone cannot say goodbye
            self._stream.close()


def dial(
    host: str, address: str, port: int, *, seconds: float, keepalive_s: float, stop: threading.Event
) -> socket.socket:
    """Return a connected socket; tries every address that the name has, within the time given.

    Raises Unreachable that says which of it was: name, refusal, route or silence.
    """
    deadline = time.monotonic() + seconds
    places = _resolve(host, address, port)
    trouble: OSError = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    for left, (family, place) in zip(range(len(places), 0, -1), places, strict=True):
        share = max(0.0, deadline - time.monotonic()) / left
        try:
            return _connect(family, place, share, keepalive_s, stop)
        except OSError as error:
            trouble = error
    raise _unreachable(host, f"{address} port {port}", trouble, seconds) from trouble


Place = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


def _resolve(host: str, address: str, port: int) -> list[tuple[int, Place]]:
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        again = getattr(error, "errno", None) == socket.EAI_AGAIN
        why = "the name server does not answer" if again else "no such name"
        raise Unreachable(
            f"cannot find {host}: {address} does not resolve ({why})",
            host=host,
            said=str(getattr(error, "strerror", error)),
            remedy=f"see getent hosts {address}; correct address: in the inventory",
        ) from error
    return [(family, place) for family, _, _, _, place in found]


def _connect(
    family: int, place: Place, seconds: float, keepalive_s: float, stop: threading.Event
) -> socket.socket:
    """Return a connected socket, or raise OSError; gives up at once when the run is stopped."""
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        code = connection.connect_ex(place)
        if code == errno.EINPROGRESS:
            _await_writable(connection, seconds, stop)
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        _check(code)
        _tune(connection, keepalive_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))


def _await_writable(connection: socket.socket, seconds: float, stop: threading.Event) -> None:
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    deadline = time.monotonic() + seconds
    while not poll.poll(SLICE_S * 1000):
        if stop.is_set() or time.monotonic() >= deadline:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _tune(connection: socket.socket, keepalive_s: float) -> None:
    """Set what an SSH line needs. A peer that is gone is noticed after three keepalive times."""
    connection.setblocking(True)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if keepalive_s <= 0:
        return
    period = max(1, int(keepalive_s))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_QUICKACK", 1),
        ("TCP_KEEPIDLE", period),
        ("TCP_KEEPINTVL", period),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 3000 * period),
    ):
        if hasattr(socket, name):  # Linux has all of them, macOS some
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _unreachable(host: str, place: str, error: OSError, seconds: float) -> Unreachable:
    where = f"cannot reach {host} at {place}"
    address = place.partition(" ")[0]
    match error.errno:
        case errno.ECONNREFUSED:
            return Unreachable(
                f"{where}: connection refused",
                host=host,
                remedy="see that sshd runs there (systemctl status ssh) and listens on that port",
            )
        case errno.EHOSTUNREACH | errno.ENETUNREACH:
            return Unreachable(
                f"{where}: no route ({error.strerror})",
                host=host,
                remedy=f"see that it is up and in this network: ip route get {address}",
            )
        case errno.ETIMEDOUT:
            return Unreachable(
                f"{where}: no answer within {seconds:g} s",
                host=host,
                remedy="the host is down, or a firewall drops the packets; see its console,"
                " or raise connect_s:",
            )
    return Unreachable(f"{where}: {error.strerror or error}", host=host)
