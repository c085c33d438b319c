"""The practice network: services at documentation addresses, seen from a practice host."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from bringup.core.host import Services
from bringup.core.reading import Known
from bringup.edge.etcd import Etcd
from bringup.edge.http import ask
from bringup.edge.services import look
from bringup.lab import fleet
from bringup.lab.hardware import address
from bringup.probes import services as seen

from .conftest import Ssh
from .test_server import client

SERVICES = Services(
    etcd=tuple(f"http://192.0.2.{number}:2379" for number in (51, 52, 53)),
    nats="nats://192.0.2.61:4222",
)

pytestmark = pytest.mark.xdist_group("lab-network")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fleet.LabStatus]:
    """The pair of the K3 report, with the services of its deployment."""
    folder = tmp_path_factory.mktemp("pair") / ".lab"
    yield fleet.up(folder, ("b300-04", "b300-07"))
    fleet.down(folder, remove=True)


def network(lab: fleet.LabStatus) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads((lab.folder / "server.json").read_text())[
        "network"
    ]
    return found


def python(ssh: Ssh, host: str, code: str) -> str:
    done = ssh(host, f"python3 -c {shlex.quote(code)}")
    return (done.stdout + done.stderr).decode().strip()


def test_etcd_and_nats_answer_through_the_ssh_connection(pair: fleet.LabStatus) -> None:
    with client(pair, "b300-04") as made:
        transport = made.get_transport()
        assert transport

        def opener(host: str, port: int, seconds: float) -> object:
            return transport.open_channel("direct-tcpip", (host, port), ("", 0), timeout=seconds)

        facts = look(opener, SERVICES, seconds=30, write_as="test")  # type: ignore[arg-type]
    etcd, nats = facts[seen.Etcd], facts[seen.Nats]
    assert isinstance(etcd, Known)
    assert len(etcd.value.healthy) == 3
    assert {member.leader for member in etcd.value.members} == {"7001"}
    assert all(isinstance(member.milliseconds, Known) for member in etcd.value.members)
    assert isinstance(nats, Known)
    assert nats.value.jetstream


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("('192.0.2.51', 2379)", ""),
        (f"('{address('b300-07')}', 22)", ""),
        (f"('{address('b300-07')}', 8998)", "Connection refused"),
        ("('192.0.2.99', 80)", "No route to host"),
    ],
    ids=["etcd", "the other host's SSH", "a port where nobody listens", "no such host"],
)
def test_a_host_reaches_its_network(pair: fleet.LabStatus, place: str, said: str) -> None:
    code = f"import socket; socket.create_connection({place}, 10)"
    assert python(Ssh(pair.folder), "b300-04", code).endswith(said)


def test_one_host_finds_the_other_under_its_address(pair: fleet.LabStatus) -> None:
    code = f"import socket; print(socket.create_connection(('{address('b300-07')}', 22)).recv(4))"
    assert python(Ssh(pair.folder), "b300-04", code) == "b'SSH-'"


def test_members_of_etcd_share_their_keys(pair: fleet.LabStatus) -> None:
    ports = [network(pair)[f"192.0.2.{number}"]["2379"] for number in (51, 52)]
    one, other = (Etcd((f"http://127.0.0.1:{port}",), seconds=120) for port in ports)
    lease = one.grant(600).id
    one.put("v1/instances/a", b"x", lease=lease)
    assert [entry.key for entry in other.range("v1/")] == ["v1/instances/a"]
    other.revoke(lease)
    assert one.get("v1/instances/a") is None


def test_the_frontend_lists_no_model_before_a_worker_registers(pair: fleet.LabStatus) -> None:
    port = network(pair)["192.0.2.71"]["8000"]
    answer = ask(f"http://127.0.0.1:{port}/v1/models", seconds=120)
    assert json.loads(answer.body) == {"object": "list", "data": []}


def test_services_keep_their_ports_over_a_restart(pair: fleet.LabStatus) -> None:
    before = network(pair)
    fleet.down(pair.folder)
    fleet.up(pair.folder)
    assert network(pair) == before
