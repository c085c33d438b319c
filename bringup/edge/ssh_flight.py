"""The only module that touches names which paramiko keeps to itself.

pyproject.toml pins paramiko's major version; tests/edge/test_ssh_flight.py fails when a release
changes one of them.
"""

from __future__ import annotations

import paramiko
from paramiko.agent import AgentSSH
from paramiko.common import cMSG_GLOBAL_REQUEST
from paramiko.message import Message


def ask_alive(transport: paramiko.Transport) -> None:
    """Send a request that any server answers, without waiting for the answer.

    Called by the transport's own thread, so paramiko's `global_request` would wait for itself.
    """
    message = Message()
    message.add_byte(cMSG_GLOBAL_REQUEST)
    message.add_string("keepalive@openssh.com")
    message.add_boolean(True)
    transport._send_user_message(message)  # type: ignore[attr-defined]  # private


def our_lists(transport: paramiko.Transport) -> str:
    """Return the methods that we offer, for an error about having none in common."""
    options = transport.get_security_options()
    return " ".join((*options.kex, *transport.preferred_keys, *options.ciphers))


def adopt(client: paramiko.SSHClient, transport: paramiko.Transport) -> None:
    """Make a client use a transport that we opened, for Fabric's surface (run, sftp, forwards)."""
    client._transport = transport  # type: ignore[attr-defined]  # private


class SocketAgent(AgentSSH):
    """An agent at a socket of our choice (IdentityAgent); paramiko reads SSH_AUTH_SOCK only."""

    def __init__(self, path: str) -> None:
        import socket

        super().__init__()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(path)
        self._connect(connection)  # type: ignore[attr-defined]  # private

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]  # private
