"""A port of this machine that leads to a place as a host sees it (``ssh -L``)."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import ToolError
from .http import Opener

OPEN_S = 15.0
PIECE = 64 * 1024


@contextmanager
def forwarded(opener: Opener, host: str, port: int) -> Iterator[int]:
    """Listen on 127.0.0.1 and carry each connection to a place; yield the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    over = threading.Event()

    def accept() -> None:
        while not over.is_set():
            try:
                near, _ = listener.accept()
            except OSError:
                return
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_carry, args=(near, opener, host, port), daemon=True).start()

    threading.Thread(target=accept, name="forward", daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        over.set()
        listener.close()


def _carry(near: socket.socket, opener: Opener, host: str, port: int) -> None:
    with contextlib.closing(near):
        try:
            far = opener(host, port, OPEN_S)
        except (OSError, ToolError):
            return
        with contextlib.closing(far):
            far.settimeout(None)
            back = threading.Thread(target=_pump, args=(far, near), daemon=True)
            back.start()
            _pump(near, far)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Copy until an end; then end the other side as well, so that nobody waits."""
    with contextlib.suppress(OSError, EOFError):
        while piece := source.recv(PIECE):
            sink.sendall(piece)
    with contextlib.suppress(OSError, EOFError):
        sink.shutdown(socket.SHUT_WR)
