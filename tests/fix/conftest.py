"""Hosts with systemd as process 1 and a small repository of packages of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..fleet.fixtures import fleet, yard
from ..fleet.yard import FleetHost, Yard
from .repository import furnish

__all__ = ["fleet", "yard"]


@pytest.fixture(scope="module")
def host(yard: Yard) -> Iterator[FleetHost]:
    """One host for all tests of a module; each works on packages and units of its own."""
    with yard.hosts(1, init="systemd") as (one,):
        furnish(one)
        yield one
