"""Connections that start on a host and end at a port of this machine: ``ssh -R``, on our line."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import paramiko

from ..core.errors import Unreachable
from .ssh_line import Line

LOOPBACK = "127.0.0.1"
PIECE = 64 * 1024


@dataclass(slots=True)
class SshTunnel:
    """An open tunnel (core.remote.Tunnel). It lives as long as its line."""

    line: Line
    to_port: int
    port: int = 0

    @property
    def alive(self) -> bool:
        return self.line.alive

    def accept(self, channel: paramiko.Channel, origin: object, server: object) -> None:
        """Take one connection; called by the line's own thread, which must not wait."""
        del origin, server
        threading.Thread(target=self._serve, args=(channel,), daemon=True).start()

    def _serve(self, channel: paramiko.Channel) -> None:
        with contextlib.closing(channel):
            try:
                near = socket.create_connection((LOOPBACK, self.to_port), timeout=10)
            except OSError:
                return
            near.settimeout(None)
            with contextlib.closing(near):
                back = threading.Thread(target=_copy, args=(near, channel), daemon=True)
                back.start()
                _copy(channel, near)
                back.join(60)


_End = socket.socket | paramiko.Channel


def _copy(source: _End, target: _End) -> None:
    """Copy until the source ends, then tell the target so."""
    with contextlib.suppress(OSError, EOFError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    with contextlib.suppress(OSError, EOFError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def open_tunnel(line: Line, *, to_port: int, host_port: int = 0) -> Iterator[SshTunnel]:
    """Have the host listen on its loopback; raises Unreachable when it refuses."""
    tunnel = SshTunnel(line, to_port)
    label = line.endpoint.label
    try:
        tunnel.port = line.transport.request_port_forward(LOOPBACK, host_port, tunnel.accept)
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise Unreachable(
            f"cannot open a tunnel on {label}: its sshd refuses port {host_port or '(any)'}:"
            f" {error}",
            host=label,
            remedy="allow it in sshd_config (AllowTcpForwarding yes or remote), or ship with"
            " --way layers, which needs no tunnel",
        ) from error
    try:
        yield tunnel
    finally:
        with contextlib.suppress(paramiko.SSHException, OSError, EOFError):
            line.transport.cancel_port_forward(LOOPBACK, tunnel.port)
