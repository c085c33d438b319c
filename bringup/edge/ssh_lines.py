"""All lines of a run: one to each host and each jump, made once, shared, and closed together."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import paramiko

from ..core.errors import Interrupted, ToolError, Unreachable
from ..core.remote import Traffic, Trusted
from . import ssh_exec, ssh_flight
from .hostscripts import Shipment
from .ssh_config import Endpoint, Route, SshOptions
from .ssh_flight import FlightFailed
from .ssh_keys import KnownHosts, preferred_kinds, trust
from .ssh_line import Line, Meter
from .ssh_login import Fly, KeyRing, log_in
from .ssh_socket import ByteStream, MeteredStream, dial
from .ssh_transport import HOST_KEYS, Dropped, HostTransport, host_key, max_startups, shake_hands

TRIES = 4
"""Connections tried when the server closes each before it says its version (MaxStartups)."""

CONNECT_TRIPS = 4
"""Round trips until a line is encrypted: TCP, versions, and two of the key exchange."""

PAUSE_S = 0.4
"""First pause between those, doubled each time, with up to as much again at random."""


FAULT_S = 5.0
"""Seconds for which hosts behind a jump share its failure; then the next one dials anew."""


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
            except Unreachable:
                self._go_on(endpoint)
                raise
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
        lines = () if endpoint.pin else self._known.about(endpoint)
        kinds = preferred_kinds(lines, HOST_KEYS)
        transport = shake_hands(stream, endpoint, kinds, self.stop)
        meter.round_trips += CONNECT_TRIPS
        try:
            trusted = self._trust(endpoint, transport)
            fly = self._flight(endpoint, transport, first)
            channel = log_in(transport, endpoint, self._ring, fly)
        except BaseException:
            stream.abort()
            transport.close()
            raise
        flies = self._flies(endpoint, transport)
        meter.round_trips += 1 if flies else 2
        line = Line(route, transport, stream, meter, flies=flies, trusted=trusted)
        with self._lock:
            self._lines.append(line)
        return line, channel

    def _flight(
        self, endpoint: Endpoint, transport: HostTransport, first: Shipment | None
    ) -> Fly | None:
        """Return how to log in and start the first command at once, where that may work."""
        if not self._flies(endpoint, transport):
            return None
        text = ssh_exec.text_of(first) if first else ""
        return lambda key: ssh_flight.take_off(
            transport, endpoint.user, key, text, 2 * endpoint.connect_s
        )

    def _flies(self, endpoint: Endpoint, transport: HostTransport) -> bool:
        wanted = self.options.one_flight and endpoint not in self._grounded
        return wanted and ssh_flight.can_fly(transport)

    def _trust(self, endpoint: Endpoint, transport: HostTransport) -> Trusted:
        return trust(
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
            return _proxy(endpoint)
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
    """A line that many wait for: made by the first, its failure told to all for a while."""

    def __init__(self, make: Callable[[], Line]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._fault: ToolError | None = None
        self._failed_at = 0.0

    def get(self) -> Line:
        with self._lock:
            if self._line is not None and self._line.alive:
                return self._line
            if self._fault is not None and time.monotonic() < self._failed_at + FAULT_S:
                raise _again(self._fault)
            self._line = self._fault = None
            try:
                self._line = self._make()
            except ToolError as fault:
                self._fault, self._failed_at = fault, time.monotonic()
                raise _again(fault) from None
            return self._line


def _proxy(endpoint: Endpoint) -> paramiko.ProxyCommand:
    try:
        return paramiko.ProxyCommand(endpoint.proxy_command)
    except OSError as error:
        raise Unreachable(
            f"cannot reach {endpoint.label}: its ProxyCommand does not start ({error.strerror})",
            host=endpoint.label,
            said=endpoint.proxy_command,
            remedy="correct ProxyCommand in ~/.ssh/config",
        ) from error


def _again(fault: ToolError) -> ToolError:
    """Return the failure of a jump for one more host behind it."""
    return type(fault)(fault.message, said=fault.said, remedy=fault.remedy)
