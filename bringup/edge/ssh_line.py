"""Open lines: one to each host and each jump, made once, shared, counted, and closed together."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import paramiko

from ..core.errors import Interrupted, ToolError, Unreachable
from ..core.remote import Result, Traffic
from . import ssh_exec, ssh_flight
from .hostscripts import Shipment
from .ssh_config import Endpoint, Route, SshOptions
from .ssh_exec import ChannelSession, Lost, Talk
from .ssh_flight import FlightFailed
from .ssh_keys import KnownHosts, preferred_kinds, trust
from .ssh_login import Fly, KeyRing, log_in
from .ssh_socket import ByteStream, MeteredStream, dial
from .ssh_transport import HOST_KEYS, Dropped, HostTransport, host_key, max_startups, shake_hands

TRIES = 4
"""Connections tried when the server closes each before it says its version (MaxStartups)."""

PAUSE_S = 0.4
"""First pause between those, doubled each time, with up to as much again at random."""


@dataclass(slots=True)
class Meter:
    """What a host has cost so far."""

    streams: list[MeteredStream]
    commands: int = 0

    def traffic(self) -> Traffic:
        return Traffic(
            connections=len(self.streams),
            commands=self.commands,
            sent=sum(stream.sent for stream in self.streams),
            received=sum(stream.received for stream in self.streams),
        )


class Line:
    """An open, trusted and logged-in line to one endpoint."""

    def __init__(
        self, route: Route, transport: HostTransport, stream: MeteredStream, meter: Meter
    ) -> None:
        self.route = route
        self.endpoint = route[-1]
        self.transport = transport
        self._stream = stream
        self._meter = meter

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
            return ssh_exec.exchange(self.transport, talk, self.abort, channel)
        except Lost as lost:
            raise self._lost(lost, time.monotonic() - began) from lost
        except ToolError as fault:
            self.abort()
            raise fault.at(host=self.endpoint.label) from None

    def start(self, shipment: Shipment) -> ChannelSession:
        """Run a command that ends when its input does."""
        self._meter.commands += 1
        try:
            channel = ssh_exec.begin(self.transport, shipment, self.abort)
            channel.settimeout(ssh_exec.OPEN_S)
            channel.sendall(shipment.prefix)
        except (OSError, EOFError) as error:
            raise self._lost(Lost(str(error) or "the line closed"), 0.0) from error
        except Lost as lost:
            raise self._lost(lost, 0.0) from lost
        channel.set_combine_stderr(True)
        return ChannelSession(channel)

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


class Lines:
    """Makes lines, each jump once for all hosts behind it, and ends all of them together."""

    def __init__(self, options: SshOptions) -> None:
        self.options = options
        self.stop = threading.Event()
        self._known = KnownHosts()
        self._ring = KeyRing()
        self._lock = threading.Lock()
        self._jumps: dict[Route, _Once] = {}
        self._grounded: set[Endpoint] = set()
        self._lines: list[Line] = []
        self._meters: dict[str, Meter] = {}

    def open(
        self, route: Route, first: Shipment | None = None
    ) -> tuple[Line, paramiko.Channel | None]:
        """Return a new line to the end of a route, and the channel of a first command.

        No channel comes back where the command did not go out with the login. Raises
        Unreachable, naming the hop at fault.
        """
        endpoint, dropped = route[-1], 0
        while True:
            self._go_on(endpoint)
            try:
                return self._open(route, first)
            except FlightFailed:
                self._grounded.add(endpoint)
            except Dropped:
                dropped += 1
                if dropped == TRIES:
                    raise max_startups(endpoint, TRIES) from None
                self.stop.wait(PAUSE_S * 2 ** (dropped - 1) * (1 + random.random()))  # noqa: S311

    def traffic(self) -> dict[str, Traffic]:
        with self._lock:
            return {name: meter.traffic() for name, meter in sorted(self._meters.items())}

    def close(self) -> None:
        """End everything, within a second: first all streams, then their threads."""
        self.stop.set()
        with self._lock:
            lines, self._lines = self._lines, []
            streams = [s for meter in self._meters.values() for s in meter.streams]
        for stream in streams:
            stream.abort()
        for line in lines:
            line.close()

    def _go_on(self, endpoint: Endpoint) -> None:
        if self.stop.is_set():
            raise Interrupted(f"cannot go on with {endpoint.label}: the run was stopped")

    def _open(self, route: Route, first: Shipment | None) -> tuple[Line, paramiko.Channel | None]:
        endpoint = route[-1]
        stream = MeteredStream(self._stream(route))
        meter = self._count(endpoint.label, stream)
        kinds = preferred_kinds(self._known.about(endpoint), HOST_KEYS)
        transport = shake_hands(stream, endpoint, kinds, self.stop)
        try:
            self._trust(endpoint, transport)
            fly = self._flight(endpoint, transport, first)
            channel = log_in(transport, endpoint, self._ring, fly)
        except BaseException:
            stream.abort()
            transport.close()
            raise
        line = Line(route, transport, stream, meter)
        with self._lock:
            self._lines.append(line)
        return line, channel

    def _flight(
        self, endpoint: Endpoint, transport: HostTransport, first: Shipment | None
    ) -> Fly | None:
        """Return how to log in and start the first command at once, where that may work."""
        grounded = not self.options.one_flight or endpoint in self._grounded
        if grounded or not ssh_flight.can_fly(transport):
            return None
        text = ssh_exec.text_of(first) if first else ""
        return lambda key: ssh_flight.take_off(
            transport, endpoint.user, key, text, 2 * endpoint.connect_s
        )

    def _trust(self, endpoint: Endpoint, transport: HostTransport) -> None:
        trust(
            endpoint,
            host_key(transport),
            self._known,
            accept_new=self.options.accept_new,
            now=time.time(),
        )

    def _stream(self, route: Route) -> ByteStream:
        endpoint = route[-1]
        if len(route) > 1:
            return self._jump(route[:-1]).forward(endpoint)
        if endpoint.proxy_command:
            return paramiko.ProxyCommand(endpoint.proxy_command)
        return dial(
            endpoint.label,
            endpoint.address,
            endpoint.port,
            seconds=endpoint.connect_s,
            keepalive_s=endpoint.keepalive_s,
            stop=self.stop,
        )

    def _jump(self, route: Route) -> Line:
        with self._lock:
            once = self._jumps.setdefault(route, _Once(lambda: self.open(route)[0]))
        return once.get()

    def _count(self, label: str, stream: MeteredStream) -> Meter:
        with self._lock:
            meter = self._meters.setdefault(label, Meter([]))
            meter.streams.append(stream)
        if self.stop.is_set():  # closed while it was being made
            stream.abort()
        return meter


class _Once:
    """A line that many wait for: made by the first, its failure told to all."""

    def __init__(self, make: Callable[[], Line]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._fault: ToolError | None = None

    def get(self) -> Line:
        with self._lock:
            if self._line is None and self._fault is None:
                try:
                    self._line = self._make()
                except ToolError as fault:
                    self._fault = fault
            if self._fault is not None:
                raise _again(self._fault)
            assert self._line is not None
            return self._line


def _again(fault: ToolError) -> ToolError:
    """Return the failure of a jump for one more host behind it."""
    return type(fault)(fault.message, said=fault.said, remedy=fault.remedy)
