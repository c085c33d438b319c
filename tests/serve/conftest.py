"""Fixtures of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.dynamo.fixtures import dynamo_env, loopback, shared_loopback
from tests.dynamo.loopback import Loopback
from tests.dynamo.model import toy_model
from tests.fleet.fixtures import fleet, make_sshd, sshd, yard

from .practice import Practice, practice

__all__ = ["dynamo_env", "fleet", "loopback", "make_sshd", "shared_loopback", "sshd", "yard"]

MakePractice = Callable[..., Practice]


@pytest.fixture
def deployment(shared_loopback: Loopback, tmp_path: Path) -> Iterator[MakePractice]:
    """Make a practice deployment on the module's etcd; the test's end stops it."""
    shared_loopback.forget()
    with ExitStack() as stack:

        def make(dynamo: Loopback | None = None, **more: object) -> Practice:
            model = toy_model(tmp_path / "models/toy")
            folder = tmp_path / "practice"
            return stack.enter_context(practice(folder, dynamo or shared_loopback, model, **more))

        yield make
