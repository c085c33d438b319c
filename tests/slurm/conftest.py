"""A host in a cluster of its own: under Debian's Slurm, and under a stand-in that keeps state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.fixtures import yard
from tests.fleet.yard import Yard

from .cluster import Cluster, RealCluster, StandInCluster, packages

__all__ = ["yard"]


@pytest.fixture(params=["stand-in", "real"])
def cluster(request: pytest.FixtureRequest, yard: Yard, tmp_path: Path) -> Iterator[Cluster]:
    """A host with Slurm; the real one where its packages can be had."""
    folder = packages() if request.param == "real" else None
    with ExitStack() as stack:
        (host,) = stack.enter_context(yard.hosts(1))
        made = StandInCluster(host) if folder is None else RealCluster(host, folder)
        made.start()
        yield made
