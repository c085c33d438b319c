"""Hosts with systemd as process 1 and a small repository of packages of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..fleet.fixtures import fleet, yard
from ..fleet.yard import FleetHost, Yard
from .bare import FILES, PACKAGES, PROGRAMS, STRIP
from .hardware import clothe, driver_only
from .repository import furnish, own_packages
from .test_driver_only import MODEL

__all__ = ["fleet", "yard"]


@pytest.fixture(scope="module")
def host(yard: Yard) -> Iterator[FleetHost]:
    """One host for all tests of a module; each works on packages and units of its own."""
    with yard.hosts(1, init="systemd") as (one,):
        own_packages(one)
        furnish(one)
        yield one


@pytest.fixture(scope="session")
def bare(yard: Yard) -> Path:
    """The layer of a host that has nothing for GPUs, and a repository that has it all."""
    with yard.hosts(1, init="systemd") as (one,):
        own_packages(one)
        one.exec("sh", "-c", STRIP)
        furnish(one, PACKAGES, PROGRAMS, FILES)
        return yard.kept(one, "bare")


@pytest.fixture(scope="session")
def gpu_host(yard: Yard, bare: Path) -> Iterator[FleetHost]:
    """Eight B300 with their driver; each fault sets up what it needs."""
    with yard.hosts(1, init="systemd", over=bare) as (host,):
        host.exec("apt-get", "-q", "-y", "install", "nvidia-driver-580-open")
        clothe(host, driver_only())
        host.exec("sh", "-c", MODEL)
        yield host
