"""The controller itself as a host: the same scripts, run by a local sh instead of over SSH."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO

from ..core.errors import ToolError
from ..core.host import Host, Login
from ..core.remote import Result
from ..core.steps import Run
from . import hostscripts
from .actions import Call, ScriptedRemote, Session
from .http import direct
from .output import CAP_BYTES, Output

GRACE_S = 15.0
"""Seconds that an answer may take beyond the limit that the script's own `timeout` enforces."""

LINGER_S = 2.0
"""A command has ended, but something it left running holds its output: not waited for longer."""


class LocalRemote(ScriptedRemote):
    """A host without a line to it (core.remote.Remote); its `root:` is a folder here."""

    def __init__(self, host: Host, *, cap_bytes: int = CAP_BYTES) -> None:
        super().__init__(host)
        self._cap_bytes = cap_bytes

    def exchange(self, call: Call) -> Result:
        """Execute a script by sh; raises ToolError where sh itself cannot be started."""
        sudo = self.host.login.sudo
        shipment = hostscripts.bounded(
            call.script, seconds=call.seconds, input_bytes=call.input_bytes, sudo=sudo
        )
        out, error = (Output(self._cap_bytes, call.on_line) for _ in range(2))
        began = time.monotonic()
        with self._process(shipment.words) as process:
            _thread(_feed, process.stdin, (shipment.prefix,), call.input)
            readers = (
                _thread(_drain, process.stdout, out.feed),
                _thread(_drain, process.stderr, error.feed),
            )
            code = self._wait(process, call.seconds + GRACE_S)
            for reader in readers:
                reader.join(LINGER_S)
        out.end()
        error.end()
        return Result(code, out.text(), error.text(), time.monotonic() - began)

    def dial(self, host: str, port: int, seconds: float) -> socket.socket:
        """Return a plain connection (core.remote.Dials)."""
        return direct(host, port, seconds)

    def start(self, script: str) -> Session:
        """Execute a script that ends when its input does."""
        shipment = hostscripts.unbounded(script, sudo=self.host.login.sudo)
        process = self._process(shipment.words, subprocess.STDOUT)
        _feed(process.stdin, (shipment.prefix,))
        return _LocalSession(process)

    def _process(
        self, words: tuple[str, ...], stderr: int = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(
                f"cannot start {words[0]} here: {error.strerror}", host=self.host.name
            ) from error

    def _wait(self, process: subprocess.Popen[bytes], seconds: float) -> int:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ToolError(
                f"cannot get an answer here: a command did not end within {seconds:.0f} s",
                host=self.host.name,
                remedy="see ps for a process in state D, and dmesg for the device it waits for",
            ) from None
        finally:
            _end(process)


def run_here(
    words: tuple[str, ...], *, seconds: int, on_line: Callable[[str], None] | None = None
) -> Result:
    """Run a program of this machine, lines told as they come; exit 124 where its time ran out."""
    return LocalRemote(Host("controller", Login(""))).run(Run(words, seconds), on_line=on_line)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its input, and kill its process group while it lives."""
    with suppress(OSError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _thread(work: Callable[..., None], *values: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=values, daemon=True)
    thread.start()
    return thread


def _feed(pipe: IO[bytes] | None, *streams: Iterable[bytes]) -> None:
    """Write streams to a process; its end is told by its exit code, not here."""
    assert pipe is not None
    with suppress(OSError, ValueError):
        for stream in streams:
            for piece in stream:
                pipe.write(piece)
        pipe.flush()


def _drain(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
    with suppress(OSError, ValueError):
        while data := os.read(pipe.fileno(), 65536):
            take(data)


class _LocalSession:
    """A local script that keeps running (actions.Session)."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def read_text(self, seconds: float) -> str:
        found: list[str] = []
        reader = _thread(lambda: found.append(os.read(self._stdout.fileno(), 65536).decode()))
        reader.join(seconds)
        return found[0] if found else ""

    def beat(self) -> bool:
        try:
            self._stdin.write(b"\n")
            self._stdin.flush()
        except (OSError, ValueError):
            return False
        return not self.ended

    def finish(self, seconds: float) -> None:
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        _end(self._process)
