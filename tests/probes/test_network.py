"""Ports, addresses, names, etcd and NATS as a host sees them: real servers, real shells."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.facts import Probe
from bringup.core.host import Services
from bringup.core.reading import Known, Unknown
from bringup.core.script import Section
from bringup.edge import services as edge
from bringup.edge.http import direct
from bringup.probes import network, services
from bringup.probes.network import Addresses, Listeners, Names, Reach
from bringup.probes.services import Etcd, Nats
from tests.dynamo.etcd import Server, etcd_server
from tests.dynamo.nats import nats_server
from tests.dynamo.processes import free_ports

from .asking import SHELLS, ask

ALL = (
    *network.PROBES,
    network.names_probe(["x"]),
    services.etcd_probe(["http://x"]),
    services.nats_probe("nats://x"),
    services.reach_probe(["x:1"]),
)


def section(text: str, rc: int = 0) -> Section:
    return Section("x", rc, text)


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n\0:{}[]/")))
def test_garbage_is_unknown(probe: Probe[object], text: str) -> None:
    assert isinstance(probe.parse(section(text)), Unknown)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_taken_port_names_its_owner(shell: tuple[str, ...]) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = int(one.getsockname()[1])
        found = ask(network.listeners_probe([port]), shell=shell)[Listeners]
        assert isinstance(found, Known)
        (taken,) = found.value.on(port)
        assert (taken.address, taken.pid) == ("127.0.0.1", os.getpid())
        assert f"({os.getpid()})" in taken.owner


TCP = """\
tcp\t  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
tcp\t   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1
tcp\t   1: 0500000A:C350 0600000A:0016 01 00000000:00000000 00:00000000 00000000     0        0 4243 1
tcp6\t  sl  local_address                         remote_address                        st
tcp6\t   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 99 1
owner\t4242\t4711\tpython3\t/system.slice/docker-abc.scope
end\tof ports
"""  # noqa: E501 - the kernel's own lines


def test_the_kernels_hexadecimal_is_read() -> None:
    found = network.parse_listeners(section(TCP))
    assert isinstance(found, Known)
    ssh, web = found.value.listeners
    assert (ssh.port, ssh.address) == (22, "::")
    assert ssh.owner == "a process that this login may not see"
    assert (web.port, web.address) == (8080, "127.0.0.1")
    assert web.owner == "python3 (4711) in /system.slice/docker-abc.scope"


ROUTES = """\
name\tb300-04
route\tIface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
route\tbond0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
route\tbond0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
fib_trie\t           |-- 127.0.0.0
fib_trie\t              /8 host LOCAL
fib_trie\t           |-- 127.0.0.1
fib_trie\t              /32 host LOCAL
fib_trie\t           |-- 192.0.2.14
fib_trie\t              /32 host LOCAL
if_inet6\tfe800000000000000000000000000001 02 40 20 80    bond0
end\tof addresses
"""


def test_addresses_and_the_default_route_need_no_tool() -> None:
    found = network.parse_addresses(section(ROUTES))
    assert isinstance(found, Known)
    told = found.value
    assert (told.host_name, told.gateway, told.interface) == ("b300-04", "192.0.2.1", "bond0")
    assert told.by_address["192.0.2.14"] == "bond0"
    assert told.reachable == ("192.0.2.14",)


def test_this_machine_has_an_address() -> None:
    assert isinstance(ask(network.PROBES[1])[Addresses], Known)


def test_names_are_looked_up_on_the_host() -> None:
    found = ask(network.names_probe(["localhost", "no-such-name.invalid"]))[Names]
    assert isinstance(found, Known)
    assert found.value.addresses["localhost"]
    assert found.value.addresses["no-such-name.invalid"] == ()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with etcd_server(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("nats")
    with nats_server(folder, "-js", "-sd", str(folder)) as place:
        yield f"nats://user:secret@{place}"


@pytest.fixture
def only(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """A PATH on which of the means to connect there is one alone."""
    tools = ("timeout", "sh", "sed", "head", "tr", "cut", "cat", "sleep", "grep", request.param)
    for name in dict.fromkeys(tools):
        found = os.path.realpath(sys.executable) if name == "python3" else shutil.which(name)
        assert found or name == "nc", name
        (tmp_path / name).symlink_to(found or str(shutil.which("busybox")))
    return {"PATH": str(tmp_path)}


@pytest.mark.parametrize("only", ["bash", "python3", "perl", "nc"], indirect=True)
def test_every_means_to_connect_sees_the_same(
    etcd: Server, nats: str, only: dict[str, str]
) -> None:
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    probes = (
        services.etcd_probe([etcd.url, dead]),
        services.nats_probe(nats),
        services.reach_probe([etcd.url.removeprefix("http://"), dead.removeprefix("http://")]),
    )
    facts = ask(*probes, shell=("/bin/dash",), env=only)
    members = facts[Etcd]
    assert isinstance(members, Known)
    by_url = {member.endpoint: member for member in members.value.members}
    assert by_url[etcd.url].health == Known(True, '{"health":"true"}')
    assert by_url[etcd.url].leader
    assert by_url[etcd.url].bytes_used
    assert isinstance(by_url[dead].health, Unknown)
    server = facts[Nats]
    assert isinstance(server, Known)
    assert server.value.jetstream
    assert "secret" not in server.value.endpoint


def test_reach_tells_open_from_refused(etcd: Server) -> None:
    here = etcd.url.removeprefix("http://")
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    found = ask(services.reach_probe([here, dead, "no-such-name.invalid:1"]))[Reach]
    assert isinstance(found, Known)
    assert (found.value.met[here], found.value.met[dead]) == ("open", "refused")
    assert found.value.met["no-such-name.invalid:1"] not in ("open", "refused", "timeout")


def test_a_server_that_does_not_answer_times_out_alone(etcd: Server, nats: str) -> None:
    etcd.program.freeze()
    try:
        facts = ask(services.etcd_probe([etcd.url]), services.nats_probe(nats))
    finally:
        etcd.program.thaw()
    members = facts[Etcd]
    assert isinstance(members, Known)
    assert members.value.members[0].health == Unknown("timeout", "")
    assert isinstance(facts[Nats], Known)


def test_through_a_channel_the_same_is_seen(etcd: Server, nats: str) -> None:
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    facts = edge.look(direct, Services((etcd.url, dead), nats))
    members = facts[Etcd]
    assert isinstance(members, Known)
    good, bad = members.value.members
    assert good.health == Known(True, '{"health":"true"}')
    assert good.leader
    assert isinstance(good.milliseconds, Unknown)
    assert bad.health == Unknown("refused", bad.health.evidence)
    assert isinstance(facts[Nats], Known)


def test_the_write_test_leaves_nothing_behind(etcd: Server) -> None:
    found = edge.etcd(direct, [etcd.url], write_as="b300-04")
    assert isinstance(found, Known)
    assert isinstance(found.value.members[0].milliseconds, Known)
    assert etcd.client.range("bringup/") == ()


def test_a_channel_that_is_refused_is_unknown(nats: str) -> None:
    def refused(host: str, port: int, seconds: float) -> socket.socket:
        raise ConnectionRefusedError("Connection refused")

    assert edge.nats(refused, nats) == Unknown("refused", "Connection refused")


@pytest.mark.parametrize(
    ("text", "health"),
    [
        ('HTTP/1.0 200 OK  {"health":"true"}', True),
        ('HTTP/1.0 503 {"health":"false","reason":"RAFT NO LEADER"}', False),
        ('HTTP/1.0 200 OK  {"status":"ok"}', None),
        ("<html>health true</html>", None),
    ],
)
def test_only_etcds_own_words_make_it_healthy(text: str, health: bool | None) -> None:
    found = services.health_of(0, text)
    assert (found.value if isinstance(found, Known) else None) is health
