"""This machine as a `Remote` for tests: real processes, real files below a root of their own."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bringup.core.remote import Result
from bringup.core.steps import Push, Run, Write
from bringup.core.words import command


@dataclass
class Straight:
    """A tunnel that needs none."""

    port: int
    alive: bool = True


@dataclass
class Here:
    """Runs commands on this machine; paths in actions gain `root`."""

    root: str = ""
    sent: int = 0

    def read(self, script: str, *, seconds: float) -> Result:
        return self._do(["sh", "-c", script], b"", seconds, None)

    def run(self, action: Run, *, on_line: Callable[[str], None] | None = None) -> Result:
        self.sent += len(action.input)
        line = f"R={self.root}\n" + command(action.words)
        return self._do(["sh", "-c", line], action.input, action.seconds, on_line)

    def _do(
        self, words: list[str], stdin: bytes, seconds: float, on_line: Callable[[str], None] | None
    ) -> Result:
        began = time.monotonic()
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        out, error = [list[str](), list[str]()]
        readers = [
            threading.Thread(target=_pump, args=(process.stdout, out, on_line)),
            threading.Thread(target=_pump, args=(process.stderr, error, on_line)),
        ]
        for reader in readers:
            reader.start()
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 124
        for reader in readers:
            reader.join()
        return Result(code, "".join(out), "".join(error), time.monotonic() - began)

    def write(self, files: tuple[Write, ...], *, then: str = "", seconds: float = 0.0) -> Result:
        for file in files:
            self.sent += len(file.content)
            path = Path(self.root + file.path.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            staged = path.with_name(path.name + ".new")
            staged.write_bytes(file.content)
            staged.replace(path)
        return self.read(then, seconds=seconds) if then else Result(0, "")

    def push(self, action: Push, *, on_bytes: Callable[[int], None] | None = None) -> None:
        raise NotImplementedError

    @contextlib.contextmanager
    def lock(self, details: str) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def tunnel(self, *, to_port: int, host_port: int = 0) -> Iterator[Straight]:
        """The host's loopback is the controller's own here."""
        yield Straight(to_port)


def _pump(stream: object, into: list[str], on_line: Callable[[str], None] | None) -> None:
    for raw in stream:  # type: ignore[attr-defined]
        line = raw.decode(errors="replace")
        into.append(line)
        if on_line is not None:
            on_line(line.rstrip("\n"))
