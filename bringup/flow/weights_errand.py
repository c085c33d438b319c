"""What one host lacks, and how far its copy has come: shared by the threads of its streams."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field

from ..core.errors import ToolError
from ..core.event import Event, Listen
from ..core.host import Host
from ..edge.actions import ScriptedRemote
from ..weights.folder import File
from ..weights.plan import HostPlan, duration, size


@dataclass(frozen=True, slots=True)
class Terms:
    """How a copy is to be made. `rate` in bytes a second for each receiving host, 0: no limit."""

    streams: int = 4
    rate: int = 0
    port: int = 0
    carried: bool = False  # all through this controller
    relay: bool = True
    reopens: int = 6  # of a host's line in a row, without a byte in between

    @property
    def rate_of_stream(self) -> int:
        return max(1, self.rate // self.streams) if self.rate else 0


@dataclass(slots=True)
class Errand:
    """One host's copy: what it lacks, what has come. Shared by the threads of its streams."""

    plan: HostPlan
    host: Host
    remote: ScriptedRemote
    listen: Listen
    pending: list[File]
    numbers: dict[str, int]  # of each file in the lists of stations
    place: str  # folder of the source, for what the host sees itself or is sent from here
    sees_it: bool  # the host sees the source by itself: a mount, or its own other folder
    parts: dict[str, int]  # bytes of unfinished files by key
    came: dict[str, int] = field(default_factory=dict)  # bytes of each file that are there
    began_with: dict[str, int] = field(default_factory=dict)
    by: dict[str, int] = field(default_factory=dict)  # bytes by who sent them
    tries: dict[str, int] = field(default_factory=dict)
    through: dict[str, int] = field(default_factory=dict)  # port of the carrying tunnel by source
    error: ToolError | None = None
    began: float = field(default_factory=time.monotonic)
    told: tuple[int, float] = (-1, 0.0)
    tunnels: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        return sum(file.size for file in self.plan.difference.files)

    @property
    def sent(self) -> int:
        return sum(at - self.began_with.get(key, at) for key, at in self.came.items())

    def reached(self, file: File, at: int, source: str) -> None:
        """Take note how far a file is; tell it every twentieth of the way, and each half minute."""
        with self.guard:
            first = self.began_with.setdefault(file.key, at)
            more = at - self.came.get(file.key, first)
            self.came[file.key] = at
            if more > 0:
                self.by[source] = self.by.get(source, 0) + more
                self.tries[file.name] = 0
        self._tell(source)

    def _tell(self, source: str) -> None:
        done, now = sum(self.came.values()), time.monotonic()
        share = done / self.total if self.total else 1.0
        with self.guard:
            step, at = self.told
            if int(share * 20) == step and now - at < 30:
                return
            self.told = int(share * 20), now
        rate = self.sent / max(0.1, now - self.began)
        is_steady = rate > 0 and now - self.began > 2
        left = f", {duration((self.total - done) / rate)} left" if is_steady and share < 1 else ""
        pace = f", {size(rate)}/s{left}" if is_steady else ""
        text = f"{size(done)} of {size(self.total)} from {source}{pace}"
        self.listen(Event(self.host.name, "copy", text, min(share, 1.0)))

    def say(self, text: str) -> None:
        self.listen(Event(self.host.name, "copy", text))

    def follow(self, file: File, line: str, source: str) -> None:
        """Take note of a line of a fetch."""
        word, _, number = line.strip().partition(" ")
        if word == "at" and number.isdecimal():
            self.reached(file, int(number), source)
