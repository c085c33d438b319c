"""A practice fleet for tests: one a worker process, its hosts made anew for each test that asks."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bringup.lab.fleet import down, up

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Lab:
    """A running practice fleet, and the command line pointed at it."""

    folder: Path

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def root(self, host: str) -> Path:
        return self.folder / "hosts" / host / "root"

    def words(self, verb: str, *more: str) -> list[str]:
        place = ["--inventory", str(self.inventory), "--state", str(self.state)]
        return [sys.executable, "-m", "bringup", verb, *place, *more]

    def run(self, verb: str, *more: str, seconds: int = 600) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end and return what it said."""
        return self._run(self.words(verb, *more), seconds)

    def bare(self, verb: str, *more: str, seconds: int = 600) -> subprocess.CompletedProcess[str]:
        """Run a verb that takes no inventory or state, or not both."""
        return self._run([sys.executable, "-m", "bringup", verb, *more], seconds)

    def _run(self, words: list[str], seconds: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, "HOME": str(self.folder)},
        )

    def objects(self, verb: str, *more: str) -> list[dict[str, Any]]:
        """Run a verb with --json and return its objects, events and the summary left out."""
        lines = self.run(verb, "--json", *more).stdout.splitlines()
        found = [json.loads(line) for line in lines]
        aside = ("bringup.event/1", "bringup.summary/1")
        return [one for one in found if one.get("schema") not in aside]

    def scripts(self) -> dict[str, bytes]:
        """Return every written serve script by host and name."""
        return {
            f"{host.name}/{path.name}": path.read_bytes()
            for host in sorted((self.folder / "hosts").iterdir())
            for path in (host / "root").rglob("serve_*.sh")
        }


def tree_digest(folder: Path) -> str:
    """Return a digest of every name, mode, link and byte under a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        total.update(f"{path.relative_to(folder)} {status.st_mode:o} ".encode())
        if path.is_symlink():
            total.update(str(path.readlink()).encode())
        elif path.is_file() and status.st_size < 1 << 20:
            total.update(path.read_bytes())
    return total.hexdigest()


@pytest.fixture(scope="session")
def _fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lab") / "lab"
    up(folder)
    yield folder
    down(folder, remove=True)


@pytest.fixture
def lab(_fleet: Path) -> Lab:
    """The practice fleet with fresh hosts."""
    up(_fleet, fresh=True)
    return Lab(_fleet)
