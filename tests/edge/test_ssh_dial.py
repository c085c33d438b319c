"""Services seen from a host through its SSH connection: real sshd, etcd and NATS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bringup.core.host import Services
from bringup.core.reading import Known, Unknown
from bringup.edge import services
from bringup.edge.ssh_dial import FORBIDDEN, NOT_OPEN, dialer
from bringup.probes.services import Etcd, Nats, is_unasked
from tests.dynamo.etcd import Server, etcd_server
from tests.dynamo.nats import nats_server
from tests.dynamo.processes import free_ports
from tests.fleet.fixtures import MakeSshd
from tests.fleet.sshd import Sshd

from .reaching import reach


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with etcd_server(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("nats")
    with nats_server(folder) as place:
        yield f"nats://{place}"


def test_services_are_seen_through_one_connection(sshd: Sshd, etcd: Server, nats: str) -> None:
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    with reach(sshd.host(), sshd.known_hosts) as remote:
        facts = services.look(dialer(remote), Services((etcd.url, dead), nats), write_as="h1")
        assert remote.traffic().connections == 1
    members = facts[Etcd]
    assert isinstance(members, Known)
    good, bad = members.value.members
    assert good.health == Known(True, '{"health":"true"}')
    assert isinstance(good.milliseconds, Known)
    assert bad.health == Unknown(NOT_OPEN, bad.health.evidence)
    assert isinstance(facts[Nats], Known)
    assert etcd.client.range("bringup/") == ()


def test_a_server_that_forbids_channels_says_nothing_of_the_service(
    make_sshd: MakeSshd, etcd: Server, nats: str
) -> None:
    closed = make_sshd("AllowTcpForwarding no")
    with reach(closed.host(), closed.known_hosts) as remote:
        facts = services.look(dialer(remote), Services((etcd.url,), nats))
    members = facts[Etcd]
    assert isinstance(members, Known)
    health = members.value.members[0].health
    assert isinstance(health, Unknown)
    assert is_unasked(health.why)
    assert facts[Nats] == Unknown(FORBIDDEN, FORBIDDEN)
