"""Servers that are not well: each answers TCP and then fails in a way of its own."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Serve = Callable[[socket.socket, int], None]


@dataclass
class Lame:
    """A listening port; `served` counts its connections."""

    port: int
    served: int = 0
    lines: list[socket.socket] = field(default_factory=list)

    def drop(self) -> None:
        """End every connection, as a line that breaks."""
        for line in self.lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(serve: Serve) -> Iterator[Lame]:
    """Serve each connection in a thread: `serve(connection, number)`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lame = Lame(listener.getsockname()[1])

        def work() -> None:
            with suppress(OSError):
                while True:
                    line, _ = listener.accept()
                    lame.lines.append(line)
                    threading.Thread(target=serve, args=(line, lame.served), daemon=True).start()
                    lame.served += 1

        threading.Thread(target=work, daemon=True).start()
        yield lame
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        lame.drop()


def silent(line: socket.socket, number: int) -> None:
    """Take the connection and say nothing."""


def closing(line: socket.socket, number: int) -> None:
    """Close before the version, as sshd does beyond MaxStartups."""
    line.close()


def http(line: socket.socket, number: int) -> None:
    """Be something else than SSH."""
    line.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 200)
    line.close()


def page(line: socket.socket, number: int) -> None:
    """Answer the version as a web server of old does: a page, and the end."""
    line.recv(100)
    line.sendall(b"<!DOCTYPE HTML>\n<html lang=en>Bad request syntax</html>\n")
    line.close()


def stalling(line: socket.socket, number: int) -> None:
    """Say the version, and nothing after it."""
    line.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")


def relay(
    port: int, *, limit: int | None = None, limit_up: int | None = None, drop_first: int = 0
) -> Serve:
    """Pass bytes on to a real server; drop the first connections, or the line after some bytes.

    `limit` counts what the server says, `limit_up` what it is told.
    """

    def serve(line: socket.socket, number: int) -> None:
        if number < drop_first:
            line.close()
            return
        far = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=_pass, args=(line, far, limit_up), daemon=True).start()
        _pass(far, line, limit)

    return serve


def slow(port: int, delay_s: float) -> Serve:
    """Pass bytes on to a real server, each some time after it came, both ways."""

    def serve(line: socket.socket, number: int) -> None:
        far = socket.create_connection(("127.0.0.1", port))
        for one in (line, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_pass_late, args=(line, far, delay_s), daemon=True).start()
        _pass_late(far, line, delay_s)

    return serve


def _pass_late(source: socket.socket, sink: socket.socket, delay_s: float) -> None:
    waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def deliver() -> None:
        with suppress(OSError):
            while True:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    sink.shutdown(socket.SHUT_RDWR)
                    return
                sink.sendall(data)

    threading.Thread(target=deliver, daemon=True).start()
    data = b"x"
    while data:
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        waiting.put((time.monotonic() + delay_s, data))


def _pass(source: socket.socket, sink: socket.socket, limit: int | None) -> None:
    """Copy until the end, or until more than `limit` bytes came; then end both."""
    passed = 0
    with suppress(OSError):
        while data := source.recv(65536):
            passed += len(data)
            if limit is not None and passed > limit:
                break
            sink.sendall(data)
    for line in (source, sink):
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
