"""Who has which file, and who serves it next: hosts hand on what they got, none serves too many."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ..core.errors import ToolError
from ..weights.folder import File
from .weights_station import Station

SERVES = 8
"""Files that one host serves at the same time."""

WAIT_S = 1.0


class NoSource(ToolError):
    """Nobody who has a file answers any more."""


@dataclass(slots=True)
class Market:
    """Files by name with the hosts that have them. Times when nobody is free are waited out."""

    reopen: Callable[[Station], Station]
    holders: dict[str, list[str]] = field(default_factory=dict)
    stations: dict[str, Station] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)  # host to why
    _busy: dict[str, int] = field(default_factory=dict)
    _change: threading.Condition = field(default_factory=threading.Condition)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def join(self, station: Station, names: tuple[str, ...]) -> None:
        """Let a host serve files; one that cannot serve is no help to anybody."""
        if not station.port:
            return
        with self._change:
            host = station.host.name
            self.stations[host] = station
            self.gone.pop(host, None)
            for name in names:
                self._hold(host, name)
            self._change.notify_all()

    def has(self, host: str, name: str) -> None:
        """Tell that a host has a file now."""
        with self._change:
            if host in self.stations:
                self._hold(host, name)
                self._change.notify_all()

    def _hold(self, host: str, name: str) -> None:
        holders = self.holders.setdefault(name, [])
        if host not in holders:
            holders.append(host)

    def lost(self, host: str, name: str) -> None:
        """Tell that a host does not have a file after all."""
        with self._change:
            self.holders[name] = [h for h in self.holders.get(name, []) if h != host]
            self._change.notify_all()

    def leave(self, host: str, why: str) -> None:
        """Tell that a host serves no more."""
        with self._change:
            self.gone[host] = why
            self._change.notify_all()

    def take(
        self, pending: list[File], host: str, is_over: Callable[[], bool]
    ) -> tuple[File, Station] | None:
        """Return a file for a host with the one to serve it; None when there is nothing left.

        Waits while all who have one are busy. Raises NoSource.
        """
        with self._change:
            while pending and not is_over():
                for file in pending:
                    if (source := self._free(file.name, host)) is not None:
                        pending.remove(file)
                        self._busy[source] = self._busy.get(source, 0) + 1
                        return file, self.stations[source]
                self._demand(pending[0], host)
                self._change.wait(WAIT_S)
        return None

    def put_back(self, pending: list[File], file: File) -> None:
        """Queue a file of a host again."""
        with self._change:
            pending.append(file)
            self._change.notify_all()

    def free(self, station: Station) -> None:
        """Tell that a host has served a file, or failed to."""
        with self._change:
            self._busy[station.host.name] -= 1
            self._change.notify_all()

    def _alive(self, name: str, host: str) -> list[str]:
        return [h for h in self.holders.get(name, []) if h != host and h not in self.gone]

    def _free(self, name: str, host: str) -> str | None:
        able = [h for h in self._alive(name, host) if self._busy.get(h, 0) < SERVES]
        return min(able, key=lambda h: self._busy.get(h, 0), default=None)

    def _demand(self, file: File, host: str) -> None:
        """Raise NoSource where nobody who has a file, or may yet get it, is left."""
        if self._alive(file.name, host):
            return
        told = "; ".join(f"{name}: {why}" for name, why in self.gone.items())
        raise NoSource(
            f"cannot fetch {file.name}: no host that has it serves it any more"
            + (f" ({told})" if told else ""),
            remedy="run the same command again when it is back: what arrived is kept",
        )

    def revive(self, station: Station) -> None:
        """Open a host's station again where it ended; the host is gone where that fails."""
        name = station.host.name
        with self._opening:
            if name in self.gone or self.stations.get(name) is not station or station.alive:
                return
            try:
                fresh = self.reopen(station)
            except ToolError as error:
                self.leave(name, error.message)
                return
        with self._change:
            self.stations[name] = fresh
            self._change.notify_all()
