"""This machine as a host: what SSH would run runs here in a plain shell, and trips are counted."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bringup.core.errors import Unreachable
from bringup.core.remote import Result
from bringup.core.steps import Push, Run, Write
from bringup.core.words import command


@dataclass(slots=True)
class HereHost:
    """A remote that is this machine under a root folder. `shell` runs its scripts."""

    root: str = "/"
    shell: str = "sh"
    trips: int = 0
    pushes: int = 0

    @property
    def prefix(self) -> str:
        return "" if self.root == "/" else self.root

    def read(self, script: str, *, seconds: float) -> Result:
        self.trips += 1
        words = [*shlex.split(self.shell), "-c", script]
        done = subprocess.run(words, capture_output=True, timeout=seconds, check=False)
        return Result(
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
        )

    def run(self, action: Run, *, on_line: Callable[[str], None] | None = None) -> Result:
        return self.read(f"R={shlex.quote(self.prefix)}\n{command(action.words)}", seconds=60)

    def write(self, files: tuple[Write, ...]) -> None:
        raise NotImplementedError

    def push(self, action: Push, *, on_bytes: Callable[[int], None] | None = None) -> None:
        self.pushes += 1
        data = Path(action.archive).read_bytes()
        assert hashlib.sha256(data).hexdigest() == action.sha256
        place = Path(self.prefix + action.path.path)
        staged, old = place.with_name(f".{place.name}.new"), place.with_name(f".{place.name}.old")
        staged.mkdir(parents=True)
        with tarfile.open(action.archive, errors="surrogateescape") as archive:
            archive.extractall(staged, filter="data")
        if place.exists():
            place.rename(old)
        staged.rename(place)
        shutil.rmtree(old, ignore_errors=True)
        if on_bytes:
            on_bytes(len(data))

    @contextmanager
    def lock(self, details: str) -> Iterator[None]:
        yield


@dataclass(slots=True)
class GoneHost(HereHost):
    """A host that nobody reaches."""

    def read(self, script: str, *, seconds: float) -> Result:
        raise Unreachable("cannot reach b300-99: connection refused")
