"""Hosts over SSH: a fleet owns every connection, a remote acts on one host (core.remote).

What is loaded here is light; paramiko comes with the first remote.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from ..core.errors import Interrupted, ToolError, Unreachable, UsageError
from ..core.host import Host
from ..core.remote import Result, Traffic, Trusted
from . import hostscripts, ledger, ssh_library
from .actions import Call, ScriptedRemote, Session
from .hostscripts import Shipment
from .output import Output
from .ssh_config import Resolver, Route, SshOptions

if TYPE_CHECKING:
    import socket
    from types import TracebackType

    from paramiko import Channel

    from .ssh_connection import HostConnection
    from .ssh_line import Line
    from .ssh_lines import Lines
    from .ssh_tunnel import SshTunnel

__all__ = ["SshFleet", "SshOptions", "SshRemote"]


class SshFleet:
    """Remotes for the hosts of an inventory (core.remote.Fleet); closes every line at the end."""

    def __init__(self, hosts: Mapping[str, Host], options: SshOptions | None = None) -> None:
        self.options = options or SshOptions()
        self._hosts = hosts
        self._resolver = Resolver(self.options)
        self._remotes: dict[str, SshRemote] = {}
        self._lock = threading.Lock()
        self._lines: Lines | None = None
        self._closed = False
        self.began = time.monotonic()

    def remote(self, name: str) -> SshRemote:
        """Return the remote of a host, the same one each time; connects to nothing yet."""
        with self._lock:
            if name not in self._hosts:
                raise UsageError(f"cannot find the host {name!r} in this fleet", host=name)
            if name not in self._remotes:
                self._remotes[name] = SshRemote(self, self._hosts[name])
            return self._remotes[name]

    def traffic(self) -> dict[str, Traffic]:
        """Return what each host and gateway has cost so far."""
        return self._lines.traffic() if self._lines else {}

    def close(self) -> None:
        """End every line, also those being made; whoever waits on one gets an error at once."""
        with self._lock:
            first, self._closed, lines = not self._closed, True, self._lines
        if lines is not None:
            lines.close()
        if first:
            ledger.add(self.traffic())

    def seconds_for(self, seconds: float, name: str) -> float:
        """Return how long a command may take: its own limit, or what the run has left."""
        if self.options.run_s is None:
            return seconds
        left = self.began + self.options.run_s - time.monotonic()
        if left > 1:
            return min(seconds, left)
        raise ToolError(
            f"cannot go on with {name}: the run's limit of {self.options.run_s:g} s is used up",
            host=name,
            remedy="run again, what is done stays done; or raise the limit",
        )

    @contextmanager
    def unless_closed(self, name: str) -> Iterator[None]:
        """Tell a line that this fleet closed from one that was lost."""
        try:
            yield
        except Unreachable:
            if self._closed:
                raise Interrupted(
                    f"cannot go on with {name}: the run was stopped", host=name
                ) from None
            raise

    def route(self, host: Host) -> Route:
        """Return the hops to a host, by inventory and ssh_config."""
        return self._resolver.route(host.login, host.name)

    @property
    def lines(self) -> Lines:
        from .ssh_lines import Lines

        with self._lock:
            if self._lines is None:
                self._lines = Lines(self.options)
                if self._closed:
                    self._lines.close()
            return self._lines

    def __enter__(self) -> SshFleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


class SshRemote(ScriptedRemote):
    """One host over one connection, opened when first needed (core.remote.Remote)."""

    def __init__(self, fleet: SshFleet, host: Host) -> None:
        super().__init__(host)
        ssh_library.load()
        self._fleet = fleet
        self._opening = threading.Lock()
        self._line: Line | None = None

    def exchange(self, call: Call) -> Result:
        """Run a script on the host. Raises Unreachable when no line can be made, or it is lost."""
        from .ssh_exec import Talk

        seconds = self._fleet.seconds_for(call.seconds, self.host.name)
        shipment = hostscripts.bounded(
            call.script,
            seconds=seconds,
            input_bytes=call.input_bytes,
            sudo=self.host.login.sudo,
        )
        cap = self._fleet.options.cap_bytes
        out, error = (Output(cap, call.on_line) for _ in range(2))
        with self._fleet.unless_closed(self.host.name):
            line, channel = self._line_for(shipment if call.only_reads else None)
            return line.exchange(Talk(shipment, seconds, call.input, out, error), channel)

    def start(self, script: str) -> Session:
        """Run a script that ends when its input does: the lock's holder."""
        shipment = hostscripts.unbounded(script, sudo=self.host.login.sudo)
        with self._fleet.unless_closed(self.host.name):
            return self.line().start(shipment)

    def line(self) -> Line:
        """Return the line to the host; makes it when there is none, or the last one is gone."""
        return self._line_for(None)[0]

    def _line_for(self, first: Shipment | None) -> tuple[Line, Channel | None]:
        """Return the line; where it is made now, a first command may have begun on a channel."""
        with self._opening:
            if self._line is not None and self._line.alive:
                return self._line, None
            try:
                opened = self._fleet.lines.open(self._fleet.route(self.host), first)
            except ToolError as fault:
                fault.host = self.host.name  # also where a gateway was at fault
                raise
            self._line = opened[0]
            return opened

    def dial(self, host: str, port: int, seconds: float) -> socket.socket:
        """Return a stream to a place as the host sees it (core.remote.Dials)."""
        from .ssh_dial import dialer

        return dialer(self)(host, port, seconds)

    def trusted(self) -> Trusted | None:
        """Return by what the host's key was accepted; None before the first connection."""
        return self._line.trusted if self._line is not None else None

    def traffic(self) -> Traffic:
        """Return what this host has cost so far, its gateways left out."""
        return self._fleet.traffic().get(self.host.name, Traffic())

    def tunnel(self, *, to_port: int, host_port: int = 0) -> AbstractContextManager[SshTunnel]:
        """Lead connections made on the host back to a port here (core.remote.Tunnels)."""
        from .ssh_tunnel import open_tunnel

        return open_tunnel(self.line(), to_port=to_port, host_port=host_port)

    @property
    def connection(self) -> HostConnection:
        """Fabric's surface on the same line."""
        from .ssh_connection import HostConnection

        target = self._fleet.route(self.host)[-1]
        return HostConnection(self.line, host=target.address, user=target.user, port=target.port)
