"""Connections from a host to elsewhere, through channels of its SSH connection.

So services are asked over the host's own network path, and nothing is needed on it.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from typing import Any, cast

import paramiko

from .http import Opener
from .ssh import SshRemote

FORBIDDEN = "the host's SSH server allows no channel to it (AllowTcpForwarding)"
NOT_OPEN = "not open: nobody listens, or no way there"


class _Stream:
    """A channel that serves as a socket, streams of chunks included.

    paramiko's own files have no `peek`, by which http.client reads a chunked body line by line.
    As with a socket, a file of it outlives its `close`: http.client closes at once where the
    server said ``Connection: close``, and reads the body afterwards.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._files, self._closed = 0, False
        self.recv, self.sendall = channel.recv, channel.sendall
        self.settimeout = channel.settimeout

    def makefile(self, mode: str, buffering: int | None = None) -> io.BufferedReader:
        """Return the reading side as a buffered file; nobody here writes through one."""
        assert mode == "rb"
        size = io.DEFAULT_BUFFER_SIZE if buffering is None or buffering < 2 else buffering
        self._files += 1
        return io.BufferedReader(_Raw(self._channel, self._file_closed), size)

    def close(self) -> None:
        """Close it, once its last file is closed as well."""
        self._closed = True
        if not self._files:
            self._channel.close()

    def _file_closed(self) -> None:
        self._files -= 1
        if self._closed:
            self.close()

    def shutdown(self, how: int) -> None:
        """End one side, as a socket's constants name it."""
        self._channel.shutdown(how)


class _Raw(io.RawIOBase):
    """The reading side of a channel, unbuffered; closing it tells whoever made it."""

    def __init__(self, channel: paramiko.Channel, on_close: Callable[[], None]) -> None:
        self._channel, self._on_close = channel, on_close

    def close(self) -> None:
        """Close it; a second time does nothing."""
        if not self.closed:
            super().close()
            self._on_close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        view = memoryview(buffer)
        piece = self._channel.recv(len(view))
        view[: len(piece)] = piece
        return len(piece)


def dialer(remote: SshRemote) -> Opener:
    """Return an opener that connects from the host. It works until the fleet is closed.

    It raises Unreachable where the host itself is not reached, OSError where the host does not
    reach the place. Which of "refused" and "no way there" it was, a channel does not tell: ask
    that by `probes.services.reach_probe`.
    """

    def open_from_host(host: str, port: int, seconds: float) -> socket.socket:
        transport = remote.line().transport
        try:
            channel = transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=seconds
            )
        except paramiko.ChannelException as refusal:
            raise _fault(refusal) from refusal
        except (paramiko.SSHException, EOFError) as lost:
            raise TimeoutError(f"timed out: {lost}") from lost
        channel.settimeout(seconds)
        return cast("socket.socket", _Stream(channel))  # it does as one (see http.Opener)

    return open_from_host


def _fault(refusal: paramiko.ChannelException) -> OSError:
    """Tell what the server forbids (RFC 4254, 5.1: code 1) from what it did not reach."""
    return OSError(FORBIDDEN if refusal.code == 1 else NOT_OPEN)
