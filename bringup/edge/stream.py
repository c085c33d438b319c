"""Streams that serve as sockets: over a channel of SSH, and under TLS over any of them."""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")
PIECE = 65536


class Channel(Protocol):
    """What carries bytes both ways, as `paramiko.Channel` does."""

    def recv(self, size: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def settimeout(self, seconds: float | None, /) -> None: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


class Stream:
    """A channel that serves as a socket, streams of chunks included.

    paramiko's own files have no `peek`, by which http.client reads a chunked body line by line.
    As with a socket, a file of it outlives its `close`: http.client closes at once where the
    server said ``Connection: close``, and reads the body afterwards.
    """

    def __init__(self, channel: Channel) -> None:
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

    def __init__(self, channel: Channel, on_close: Callable[[], None]) -> None:
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


class Secured:
    """A channel under TLS: `ssl` wraps real sockets only, so records go through memory."""

    def __init__(self, channel: Channel, context: ssl.SSLContext, host: str) -> None:
        self._channel = channel
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self.settimeout, self.close, self.shutdown = (
            channel.settimeout, channel.close, channel.shutdown,
        )  # fmt: skip
        self._until_done(self._tls.do_handshake)

    def recv(self, size: int, /) -> bytes:
        """Return what came, b"" once the other side has ended."""
        try:
            return self._until_done(partial(self._tls.read, size))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def sendall(self, data: bytes, /) -> None:
        view = memoryview(data)
        while view:
            view = view[self._until_done(partial(self._tls.write, view)) :]

    def _until_done(self, act: Callable[[], T]) -> T:
        """Do something, carrying records both ways until it needs no more of them."""
        while True:
            try:
                done = act()
            except ssl.SSLWantReadError:
                self._flush()
                self._fill()
            else:
                self._flush()
                return done

    def _flush(self) -> None:
        if records := self._out.read():
            self._channel.sendall(records)

    def _fill(self) -> None:
        if piece := self._channel.recv(PIECE):
            self._in.write(piece)
        else:
            self._in.write_eof()


def secured(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """Return a connection under TLS over a socket, or over what serves as one."""
    if isinstance(plain, socket.socket):
        return context.wrap_socket(plain, server_hostname=host)
    return cast("socket.socket", Stream(Secured(plain, context, host)))
