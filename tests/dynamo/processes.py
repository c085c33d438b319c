"""Programs that a test starts: free ports, own logs, bounded waits, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 240.0
"""How long a condition may take on a loaded machine before a test gives up."""


def until(
    holds: Callable[[], bool],
    what: str,
    *,
    seconds: float = PATIENCE_S,
    every: float = 0.05,
    said: Callable[[], str] = str,
) -> None:
    """Wait until a condition holds. Raises AssertionError that names it, and what was `said`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited {seconds:g} s in vain until {what}\n{said()}"
        time.sleep(every)


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports on 127.0.0.1 that nobody held a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(int(one.getsockname()[1]) for one in sockets)
    finally:
        for one in sockets:
            one.close()


def free_low_port() -> int:
    """Return a free port below 32768: Dynamo reads DYN_SYSTEM_PORT as a signed 16-bit number."""
    for port in random.sample(range(20000, 32768), 100):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port below 32768 in a hundred tries")


@dataclass(slots=True)
class Program:
    """One running program, in a session of its own, with its output in a file."""

    label: str
    child: subprocess.Popen[bytes]
    log_file: Path

    @classmethod
    def start(
        cls, label: str, words: list[str], *, env: Mapping[str, str], cwd: Path, log_file: Path
    ) -> Program:
        """Start a program that dies with this process."""
        guard = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        with log_file.open("ab") as log:
            child = subprocess.Popen(
                [*guard, *words],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return cls(label, child, log_file)

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def tail(self) -> str:
        """The last lines of its log."""
        return self.log[-3000:]

    @property
    def runs(self) -> bool:
        return self.child.poll() is None

    def ends(self, *, seconds: float = PATIENCE_S) -> int:
        """Wait until it ends by itself; return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.child.wait(seconds)
        raise AssertionError(f"{self.label} still runs after {seconds:g} s:\n{self.tail}")

    def wait_for(
        self, holds: Callable[[], bool], what: str, *, seconds: float = PATIENCE_S
    ) -> None:
        """Wait for a condition as long as the program runs."""

        def checked() -> bool:
            if holds():
                return True
            assert self.runs, f"{self.label} ended with {self.child.returncode}:\n{self.tail}"
            return False

        until(checked, f"{self.label}: {what}", seconds=seconds, said=lambda: self.tail)

    def says(self, text: str, *, seconds: float = PATIENCE_S) -> None:
        """Wait until the log holds a text."""
        self.wait_for(lambda: text in self.log, f"the log says {text!r}", seconds=seconds)

    def stop(self, *, seconds: float = 60.0) -> None:
        """End it politely, then by force."""
        self._signal(signal.SIGTERM)
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, with all its children."""
        self._signal(signal.SIGKILL)
        self.child.wait(PATIENCE_S)

    def freeze(self) -> None:
        """Stop its clock: it keeps its sockets, and answers nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after `freeze`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self.runs:
            os.killpg(self.child.pid, number)
