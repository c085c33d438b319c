"""A host in a cluster of its own: under Debian's Slurm, and under a stand-in that keeps state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.fixtures import yard
from tests.fleet.yard import Yard

from .cluster import Cluster, RealCluster, StandInCluster, packages

__all__ = ["yard"]


@pytest.fixture(params=["stand-in", "real"])
def cluster(request: pytest.FixtureRequest, yard: Yard) -> Iterator[Cluster]:
    """A host with Slurm; the real one where its packages can be had."""
    folder = packages() if request.param == "real" else None
    with yard.hosts(1) as (host,):
        made = StandInCluster(host) if folder is None else RealCluster(host, folder)
        made.start()
        yield made


@pytest.fixture
def stand_in(yard: Yard) -> Iterator[Cluster]:
    """A host with the stand-in, for what does not hang on Slurm's own ways."""
    with yard.hosts(1) as (host,):
        made = StandInCluster(host)
        made.start()
        yield made
