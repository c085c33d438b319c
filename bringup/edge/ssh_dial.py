"""Connections from a host to elsewhere, through channels of its SSH connection.

So services are asked over the host's own network path, and nothing is needed on it.
"""

from __future__ import annotations

import socket
from typing import cast

import paramiko

from .http import Opener
from .ssh import SshRemote
from .stream import Stream

FORBIDDEN = "the host's SSH server allows no channel to it (AllowTcpForwarding)"
NOT_OPEN = "not open: nobody listens, or no way there"


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
        return cast("socket.socket", Stream(channel))  # it does as one (see http.Opener)

    return open_from_host


def _fault(refusal: paramiko.ChannelException) -> OSError:
    """Tell what the server forbids (RFC 4254, 5.1: code 1) from what it did not reach."""
    return OSError(FORBIDDEN if refusal.code == 1 else NOT_OPEN)
