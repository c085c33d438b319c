"""A practice fleet that the tests of a worker share, and the real clients that log in to it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bringup.lab import fleet

Ssh = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fleet.LabStatus]:
    """All described hosts, served."""
    folder = tmp_path_factory.mktemp("fleet") / ".lab"
    yield fleet.up(folder)
    fleet.down(folder, remove=True)


@pytest.fixture(scope="session")
def ssh(lab: fleet.LabStatus) -> Ssh:
    """Run a command on a host with the real OpenSSH client."""
    return client(lab.folder)


def client(folder: Path) -> Ssh:
    """Return a function that runs the OpenSSH client with the fleet's own settings."""

    def run(host: str, command: str, *options: str, **more: object) -> object:
        words = ["ssh", "-F", str(folder / "ssh_config"), *options, host, command]
        return subprocess.run(words, check=False, capture_output=True, timeout=60, **more)  # type: ignore[call-overload]

    return run  # type: ignore[return-value]
