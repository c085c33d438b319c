"""Carry a patched image to hosts with engines of their own; count what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from bringup import flow_ship
from bringup.flow_ship import Shipping
from bringup.image.route import Way

from .dockerd import Dockerd, dockerd

pytestmark = [pytest.mark.slow, pytest.mark.root]


@pytest.fixture(scope="module")
def hosts(engines: Path) -> Iterator[dict[str, Dockerd]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(dockerd(engines / name)) for name in ("h1", "h2", "h3", "h4")
        }


def test_try(builder: Dockerd, hosts: dict[str, Dockerd], tmp_path: Path) -> None:
    import time

    builder.docker("tag", "lmsysorg/sglang:kimi-k3", "k3:1")
    shipping = Shipping(
        source=builder.engine,
        hosts={name: engine.here for name, engine in hosts.items()},
        engines={name: engine.words for name, engine in hosts.items()},
        folder=tmp_path,
        listen=lambda event: print(event.host, event.stage, event.text),
    )
    t = time.monotonic()
    for way in (Way.LAYERS, Way.PULL, Way.ARCHIVE, None):
        one = {"LAYERS": "h1", "PULL": "h2", "ARCHIVE": "h3"}.get(way.name if way else "", "h4")
        s = replace(shipping, way=way, hosts={one: hosts[one].here})
        got = flow_ship.ship(s, "k3:1")
        for a in got.arrived.values():
            print(way, a.identity, a.sent, a.seconds, a.error and (a.error.message, a.error.said))
        print(time.monotonic() - t)
    assert 0
