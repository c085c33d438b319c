"""Fixtures with real OpenSSH servers. Import them in the `conftest.py` of a folder that uses them.

`sshd` is one server on loopback, for most tests. `fleet(n)` makes n whole hosts in namespaces of
their own (root only): own network, processes, files, users, and on request an own docker engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from . import sshd as server
from .sshd import Sshd
from .yard import FleetHost, Yard, open_yard

MakeSshd = Callable[..., Sshd]
MakeFleet = Callable[..., list[FleetHost]]


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An OpenSSH server on loopback that all tests of a worker share; do not kill it."""
    with server.running(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def make_sshd(tmp_path: Path) -> Iterator[MakeSshd]:
    """Start OpenSSH servers of a test's own, with sshd_config options; the test's end ends them."""
    with ExitStack() as stack:
        count = iter(range(100))

        def make(*options: str, host_key: Path | None = None) -> Sshd:
            folder = tmp_path / f"sshd{next(count)}"
            return stack.enter_context(server.running(folder, *options, host_key=host_key))

        yield make


@pytest.fixture(scope="session")
def yard() -> Iterator[Yard]:
    """The network in which fleets stand; for a fleet of a module's own use `yard.hosts(n)`."""
    with open_yard() as ground:
        yield ground


@pytest.fixture
def fleet(yard: Yard) -> Iterator[MakeFleet]:
    """Make n hosts for one test: `fleet(3)`, `fleet(2, docker=True)`; the test's end ends them."""
    with ExitStack() as stack:
        yield lambda count, **options: stack.enter_context(yard.hosts(count, **options))
