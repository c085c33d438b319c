"""The only module that touches names which paramiko keeps to itself.

Most of it sends in one flight what needs no answer in between: the request for the login service,
the signed login, the opening of a channel and the first command. That saves 3 of some 9 round
trips of a first answer (docs/ssh.md). It relies on what OpenSSH does: it keeps what arrives early
until the login is through, and numbers its channels from 0. Nothing secret goes out before the
host key is trusted, and any surprise is a FlightFailed, after which the plain order is taken.
While a command runs the channel for the next one is opened, which saves one round trip of two, and
a command's input follows it without waiting.

pyproject.toml pins paramiko's major version; tests/edge/test_ssh_flight.py fails when a release
changes one of these names.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import paramiko
from paramiko.agent import AgentSSH
from paramiko.auth_handler import AuthHandler
from paramiko.channel import Channel
from paramiko.common import (
    MSG_SERVICE_ACCEPT,
    cMSG_CHANNEL_OPEN,
    cMSG_CHANNEL_REQUEST,
    cMSG_GLOBAL_REQUEST,
)
from paramiko.message import Message


class FlightFailed(Exception):
    """The server did not go along: log in again, in the plain order."""


def can_fly(transport: paramiko.Transport) -> bool:
    """Say whether a server is of the kind that takes everything in one flight."""
    return transport.remote_version.startswith("SSH-2.0-OpenSSH_")


def take_off(
    transport: paramiko.Transport, user: str, key: paramiko.PKey, command: str, seconds: float
) -> Channel | None:
    """Log in, and with it start a command where there is one; return its channel.

    The command must be one that may run twice: after a FlightFailed, nobody knows whether it ran.
    A refused login is one as well, since the plain order says it better. Raises TimeoutError where
    no answer comes, SSHException where the key cannot sign.
    """
    handler = _AuthAtOnce(transport)
    transport.auth_handler = handler
    answered = handler.begin(user, key)
    opening = _execute_ahead(transport, command) if command else None
    if not answered.wait(seconds):
        raise TimeoutError
    if not transport.is_authenticated():
        raise FlightFailed("the login was not accepted")
    if opening is None:
        return None
    if not opening.done.wait(seconds):
        raise TimeoutError
    if not opening.channel.active or opening.channel.remote_chanid != _FIRST:
        raise FlightFailed("the channel was not opened as expected")
    return opening.channel


class _AuthAtOnce(AuthHandler):
    """Sends the login right behind the request for the service that takes it."""

    def begin(self, user: str, key: paramiko.PKey) -> threading.Event:
        """Send both; return what is set when the server has answered."""
        answered = threading.Event()
        self.auth_event, self.auth_method = answered, "publickey"
        self.username, self.private_key = user, key
        self._request_auth()  # type: ignore[attr-defined]  # private
        accepted = Message()
        accepted.add_string("ssh-userauth")
        accepted.rewind()
        self._parse_service_accept(accepted)  # type: ignore[attr-defined]  # private
        return answered

    @property
    def _client_handler_table(self) -> dict[int, Callable[[Message], Any]]:  # Any: paramiko's own
        table = dict(super()._client_handler_table)  # type: ignore[misc]  # private
        table[MSG_SERVICE_ACCEPT] = lambda _: None  # has been acted on
        return table


_FIRST = 0
"""The number that OpenSSH gives to the first channel of a connection."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A channel whose opening has been asked for; `done` is set when the server has answered."""

    channel: Channel
    done: threading.Event

    @property
    def usable(self) -> bool:
        """Whether a command may be started on it."""
        return self.done.is_set() and bool(self.channel.active) and not self.channel.closed


def open_ahead(transport: paramiko.Transport) -> Opening:
    """Ask for a channel without waiting, so that the next command finds it open."""
    with transport.lock:
        number = transport._next_channel()  # type: ignore[attr-defined]  # private
        channel = Channel(number)
        transport._channels.put(number, channel)  # type: ignore[attr-defined]  # private
        opened = transport.channel_events[number] = threading.Event()
        transport.channels_seen[number] = True
        channel._set_transport(transport)  # type: ignore[attr-defined]  # private
        window, packet = transport.default_window_size, transport.default_max_packet_size
        channel._set_window(window, packet)  # type: ignore[attr-defined]  # private
    opening = Message()
    opening.add_byte(cMSG_CHANNEL_OPEN)
    opening.add_string("session")
    for value in (number, window, packet):
        opening.add_int(value)
    transport._send_user_message(opening)  # type: ignore[attr-defined]  # private
    return Opening(channel, opened)


def _execute_ahead(transport: paramiko.Transport, command: str) -> Opening:
    """Ask for the first channel of a connection, and for a command on it."""
    opening = open_ahead(transport)
    _request(transport, _FIRST, command)
    return opening


def execute(transport: paramiko.Transport, channel: Channel, command: str) -> None:
    """Ask for a command on an open channel without waiting, so that its input can follow at once.

    A server that refuses it closes the channel.
    """
    _request(transport, channel.remote_chanid, command)


def _request(transport: paramiko.Transport, number: int, command: str) -> None:
    request = Message()
    request.add_byte(cMSG_CHANNEL_REQUEST)
    request.add_int(number)
    request.add_string("exec")
    request.add_boolean(True)
    request.add_string(command)
    transport._send_user_message(request)  # type: ignore[attr-defined]  # private


def ask_alive(transport: paramiko.Transport) -> None:
    """Send a request that any server answers, without waiting for the answer.

    Called by the transport's own thread, so paramiko's `global_request` would wait for itself.
    """
    message = Message()
    message.add_byte(cMSG_GLOBAL_REQUEST)
    message.add_string("keepalive@openssh.com")
    message.add_boolean(True)
    transport._send_user_message(message)  # type: ignore[attr-defined]  # private


def adopt(client: paramiko.SSHClient, transport: paramiko.Transport) -> None:
    """Make a client use a transport that we opened, for Fabric's surface (run, sftp, forwards)."""
    client._transport = transport  # type: ignore[attr-defined]  # private


class SocketAgent(AgentSSH):
    """An agent at a socket of our choice (IdentityAgent); paramiko reads SSH_AUTH_SOCK only."""

    def __init__(self, path: str) -> None:
        super().__init__()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(path)
        self._connect(connection)  # type: ignore[attr-defined]  # private

    def close(self) -> None:
        """Close the socket."""
        self._close()  # type: ignore[attr-defined]  # private
