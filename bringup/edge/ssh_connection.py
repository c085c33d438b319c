"""Fabric's surface over a line of ours, for what our own actions do not cover."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import fabric
from invoke.runners import Result

from . import ssh_flight
from .ssh_line import Line


@cache
def _config() -> fabric.Config:
    """Return one configuration for all connections: no files, no ~/.ssh/config of Fabric's own."""
    return fabric.Config(
        lazy=True, overrides={"load_ssh_configs": False, "runners": {"remote": _Prompt}}
    )


class _Prompt(fabric.runners.Remote):  # type: ignore[misc]  # Fabric is untyped
    """Fabric's runner, woken by the end of the command: Invoke looks a hundred times a second."""

    def wait(self) -> None:
        while not (self.process_is_finished or self.has_dead_threads):
            self.channel.status_event.wait(WAKE_S)


WAKE_S = 0.1
"""How often a command that runs is looked after for another cause than its end."""


class HostConnection(fabric.Connection):  # type: ignore[misc]  # Fabric is untyped
    """A Fabric connection over the line that a remote already has: checked key, own socket.

    `run`, `sudo`, `put`, `get` and `forward_local` work as Fabric documents them; `env=` is
    refused, since Invoke puts its values into the command unquoted.
    """

    _line: Callable[[], Line] | None = None

    def __init__(self, line: Callable[[], Line], *, host: str, user: str, port: int) -> None:
        super().__init__(host, user=user, port=port, config=_config())
        self._set(_line=line)

    def open(self) -> None:
        """Take over the remote's line, opening it where it is not open."""
        if self.is_connected:
            return
        assert self._line is not None
        line = self._line()
        self.transport = line.transport
        ssh_flight.adopt(self.client, line.transport)

    def close(self) -> None:
        """Let go of the line; its remote and fleet close it."""

    def run(self, command: str, **options: object) -> Result:
        """Run a command by Invoke's runner; the operator's terminal is never read."""
        if options.get("env"):
            raise ValueError("env= is not quoted by Invoke; write the variables into the command")
        result: Result = super().run(command, **{"in_stream": False, "hide": True, **options})
        return result
