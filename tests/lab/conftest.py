"""Practice fleets that the tests of a worker share, and the real client that logs in to them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bringup.lab import fleet
from bringup.lab.describe import describe
from tests.needed import require

from .layouts import HERE

PATIENCE_S = 240.0
"""Longest wait for something that takes milliseconds on a quiet machine."""


@dataclass(frozen=True, slots=True)
class Ssh:
    """The OpenSSH client with the settings that `lab.up` wrote."""

    folder: Path

    def words(self, host: str, *words: str) -> list[str]:
        """Return the command line of a login; options come before the host."""
        require("ssh")
        return ["ssh", "-F", str(self.folder / "ssh_config"), *words[1:], host, *words[:1]]

    def __call__(
        self, host: str, command: str, *options: str, given: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command on a host."""
        words = self.words(host, command, *options)
        return subprocess.run(
            words, check=False, capture_output=True, input=given, timeout=PATIENCE_S
        )


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fleet.LabStatus]:
    """Two described hosts, served."""
    folder = tmp_path_factory.mktemp("fleet") / ".lab"
    yield fleet.up(folder, ("b300-04", "b200-01"))
    fleet.down(folder, remove=True)


@pytest.fixture(scope="session")
def ssh(lab: fleet.LabStatus) -> Ssh:
    return Ssh(lab.folder)


@pytest.fixture(scope="session")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fleet.LabStatus]:
    """Small hosts, each sick in its own way, and one that is well."""
    folder = tmp_path_factory.mktemp("sick") / ".lab"
    names = ("plain-01", "refuse-01", "mute-01", "stall-01", "drop-01", "freeze-01", "slow-01")
    hosts = describe((*names, "asks-01"), folder=HERE / "hosts")
    yield fleet.up(folder, descriptions=hosts)
    fleet.down(folder, remove=True)


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds, with patience for a loaded machine."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether a process lives; one that nobody has waited for yet is dead."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
    except FileNotFoundError:
        return False
    return state != "Z"
