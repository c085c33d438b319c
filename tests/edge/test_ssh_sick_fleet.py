"""Thirty hosts, a third of them sick: the sick are told apart, and nobody waits for them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bringup.core.host import Host
from bringup.core.steps import Write
from bringup.core.words import HostPath
from bringup.edge.pool import ItemOutcome, each
from bringup.edge.ssh import SshFleet, SshOptions
from tests.fleet import keys
from tests.fleet.fixtures import MakeFleet
from tests.fleet.yard import FleetHost, Yard

from .test_remote import eventually

pytestmark = [pytest.mark.root, pytest.mark.slow]

LIMIT = 8
"""Threads: fewer than hosts, so that a sick host could hold up others."""

PATIENCE = 8.0
"""Seconds to connect; a line on which nothing comes for three quarters of it is given up."""


@dataclass(frozen=True)
class Sickness:
    """How a host is made sick, and what is to be said of it."""

    name: str
    befall: Callable[[FleetHost], object]
    said: str


def _midway(befall: Callable[[FleetHost], object]) -> Callable[[FleetHost], object]:
    """Strike once the host has begun to answer."""

    def wait_and_strike(host: FleetHost) -> None:
        def strike() -> None:
            eventually(lambda: host.exec("test", "-e", "/tmp/begun", check=False).returncode == 0)
            befall(host)

        threading.Thread(target=strike, daemon=True).start()

    return wait_and_strike


SICK = (
    Sickness("refuses", FleetHost.kill_sshd, "connection refused"),
    Sickness("is off", FleetHost.power_off, r"no answer within|no route"),
    Sickness("has no cable", FleetHost.cut, r"no answer within|no route"),
    Sickness("hangs at once", FleetHost.pause, "sends no SSH version"),
    Sickness("hangs midway", _midway(FleetHost.pause), "line dropped .*nothing came"),
    Sickness("crashes midway", _midway(FleetHost.kill_sshd), "line dropped"),
    Sickness("loses its cable midway", _midway(FleetHost.cut), "line dropped"),
    Sickness("has a full disk", FleetHost.fill, "the disk is full"),
    Sickness("has another key", lambda host: None, "host key has changed"),
    Sickness("has another user", lambda host: None, "the server refused"),
)

WORK = "touch /tmp/begun; for i in 1 2 3 4 5; do sleep 0.1; echo $i; done"
LONG = "touch /tmp/begun; sleep 600"


def sicken(made: list[FleetHost], yard: Yard) -> dict[str, Sickness]:
    """Make every third host sick, each in a way of its own."""
    sick = dict(zip(made[::3], SICK, strict=True))
    known = yard.known_hosts.read_text()
    for host, sickness in sick.items():
        sickness.befall(host)
        if sickness.name == "has another key":
            mine, others = (keys.public(one.host_key) for one in (host, made[1]))
            yard.known_hosts.write_text(known.replace(mine, others))
    return {host.name: sickness for host, sickness in sick.items()}


def as_written(host: FleetHost, sickness: Sickness | None) -> Host:
    """Return what the inventory says of a host."""
    user = "nobody-here" if sickness and sickness.name == "has another user" else "root"
    return host.host(user=user, connect_s=PATIENCE, keepalive_s=PATIENCE / 4)


def test_sick_hosts_are_told_apart_and_hold_up_nobody(fleet: MakeFleet, yard: Yard) -> None:
    made = fleet(30)
    sick = sicken(made, yard)
    hosts = {host.name: as_written(host, sick.get(host.name)) for host in made}
    options = SshOptions(known_hosts=yard.known_hosts, use_ssh_config=False)
    outcomes: dict[str, ItemOutcome[str, str]] = {}
    before, began = threading.active_count(), time.monotonic()
    with SshFleet(hosts, options) as reached:

        def work(name: str) -> str:
            remote = reached.remote(name)
            midway = name in sick and "midway" in sick[name].name
            said = remote.read(LONG if midway else WORK, seconds=900).stdout
            remote.write((Write(HostPath("/small/one"), b"x" * 50_000),))
            return said

        for outcome in each(hosts, work, limit=LIMIT):
            outcomes[outcome.item] = outcome
            assert threading.active_count() - before < LIMIT + 2 * len(hosts)
    assert time.monotonic() - began < 240
    for name, sickness in sick.items():
        fault = outcomes[name].error
        assert fault is not None, f"{name} {sickness.name} and went unnoticed"
        assert re.search(sickness.said, str(fault)), f"{name} {sickness.name}: {fault}"
    for name in hosts.keys() - sick.keys():
        assert (outcomes[name].error, outcomes[name].value) == (None, "1\n2\n3\n4\n5\n")
