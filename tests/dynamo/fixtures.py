"""Fixtures with a real Dynamo. Import them in the `conftest.py` of a folder that uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .environment import dynamo_python
from .loopback import Loopback

MakeLoopback = Callable[..., Loopback]


@pytest.fixture(scope="session")
def dynamo_env() -> Path:
    """The Python that has ai-dynamo."""
    return dynamo_python()


@pytest.fixture
def loopback(dynamo_env: Path, tmp_path: Path) -> Iterator[MakeLoopback]:
    """Make a Loopback with the given settings; the test's end ends it."""
    made: list[Loopback] = []

    def make(**settings: object) -> Loopback:
        folder = tmp_path / f"dynamo{len(made)}"
        made.append(Loopback(folder, dynamo_env, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def shared_loopback(
    dynamo_env: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loopback]:
    """One Loopback with etcd for all tests of a module."""
    with Loopback(tmp_path_factory.mktemp("dynamo"), dynamo_env) as one:
        yield one
