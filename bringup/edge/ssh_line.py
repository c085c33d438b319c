"""One open line to an endpoint: commands on it, streams through it, and what it has cost."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import paramiko

from ..core.errors import ToolError, Unreachable
from ..core.remote import Result, Traffic, Trusted
from . import ssh_exec, ssh_flight
from .hostscripts import Shipment
from .ssh_config import Endpoint, Route
from .ssh_exec import ChannelSession, Lost, Talk
from .ssh_socket import MeteredStream
from .ssh_transport import HostTransport


@dataclass(slots=True)
class Meter:
    """What a host has cost so far."""

    streams: list[MeteredStream]
    commands: int = 0
    round_trips: int = 0

    def traffic(self) -> Traffic:
        return Traffic(
            connections=len(self.streams),
            commands=self.commands,
            sent=sum(stream.sent for stream in self.streams),
            received=sum(stream.received for stream in self.streams),
            round_trips=self.round_trips,
        )


class Line:
    """An open, trusted and logged-in line to one endpoint."""

    def __init__(
        self,
        route: Route,
        transport: HostTransport,
        stream: MeteredStream,
        meter: Meter,
        *,
        flies: bool,
        trusted: Trusted,
    ) -> None:
        self.route = route
        self.endpoint = route[-1]
        self.trusted = trusted
        self.transport = transport
        self._stream = stream
        self._meter = meter
        self._flies = flies
        self._spare: ssh_flight.Opening | None = None
        self._several = True  # sessions at once, until the server has refused one (MaxSessions 1)
        self._lock = threading.Lock()

    @property
    def alive(self) -> bool:
        return self.transport.is_active()

    def exchange(self, talk: Talk, channel: paramiko.Channel | None = None) -> Result:
        """Run one command to its end, on a channel where it has begun already.

        Raises Unreachable when the line is lost.
        """
        self._meter.commands += 1
        began = time.monotonic()
        try:
            channel = channel or self._begin(talk.shipment)
            if self._several:
                self._open_ahead()
            result = ssh_exec.exchange(channel, talk, began)
            self._open_ahead()
        except Lost as lost:
            raise self._lost(lost, time.monotonic() - began) from lost
        except ToolError as fault:
            self.abort()
            raise fault.at(host=self.endpoint.label) from None
        return result

    def _begin(self, shipment: Shipment) -> paramiko.Channel:
        """Execute words, on the channel that was opened ahead where it is there."""
        with self._lock:
            spare, self._spare = self._spare, None
        opened = spare is not None and spare.done.wait(ssh_exec.OPEN_S) and spare.usable
        ready = spare.channel if spare is not None and opened else None
        self._several = self._several and (spare is None or ready is not None)
        self._meter.round_trips += 1 if ready else 2
        return ssh_exec.begin(self.transport, shipment, self.abort, ready, flies=self._flies)

    def _open_ahead(self) -> None:
        """Ask for the channel of a next command while this one runs."""
        if not self._flies:
            return
        with self._lock, suppress(paramiko.SSHException, OSError, EOFError):
            self._spare = self._spare or ssh_flight.open_ahead(self.transport)

    def start(self, shipment: Shipment) -> ChannelSession:
        """Run a command that ends when its input does."""
        self._meter.commands += 1
        try:
            channel = self._begin(shipment)
            channel.settimeout(ssh_exec.OPEN_S)
            self._hand(channel, shipment.prefix)
            self._open_ahead()
        except (OSError, EOFError) as error:
            raise self._lost(Lost(str(error) or "the line closed"), 0.0) from error
        except Lost as lost:
            raise self._lost(lost, 0.0) from lost
        channel.set_combine_stderr(True)
        return ChannelSession(channel)

    def _hand(self, channel: paramiko.Channel, words: bytes) -> None:
        """Send what a command reads first. One that has ended by then has said why: it is read."""
        try:
            channel.sendall(words)
        except OSError:
            if not (channel.closed and self.alive):
                raise

    def forward(self, endpoint: Endpoint) -> paramiko.Channel:
        """Return a stream to an endpoint beyond this one; raises Unreachable."""
        try:
            return self.transport.open_channel(
                "direct-tcpip",
                (endpoint.address, endpoint.port),
                ("127.0.0.1", 0),
                timeout=endpoint.connect_s,
            )
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unreachable(
                f"cannot reach {endpoint.label} at {endpoint.address} port {endpoint.port} through"
                f" {self.endpoint.label}: {getattr(error, 'text', '') or error}",
                host=endpoint.label,
                remedy=f"try ssh {self.endpoint.address} nc -vz {endpoint.address} {endpoint.port};"
                " the gateway's sshd must allow it (AllowTcpForwarding)",
            ) from error

    def abort(self) -> None:
        """End the line at once; wakes whoever waits on it."""
        self._stream.abort()

    def close(self) -> None:
        self.abort()
        self.transport.close()

    def _lost(self, lost: Lost, seconds: float) -> Unreachable:
        why = self._stream.trouble or str(lost)
        return Unreachable(
            f"cannot go on with {self.endpoint.label}: the line dropped after {seconds:.1f} s in"
            f" the middle of a command ({why}; {lost.received} bytes of its answer had come)",
            host=self.endpoint.label,
            remedy="see whether it is up (console, last -x reboot), then run again: what was"
            " written is whole, the rest is done then",
        )
