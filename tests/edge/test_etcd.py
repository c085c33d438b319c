"""The etcd client against a real etcd."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.core.errors import ToolError, Unreachable, UsageError
from bringup.core.reading import Known, Unknown, value_of
from bringup.core.words import Secret
from bringup.edge.etcd import Etcd
from tests.dynamo.etcd import Server, etcd_server
from tests.dynamo.processes import free_ports, until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with etcd_server(tmp_path_factory.mktemp("etcd")) as running:
        yield running


def test_range_returns_what_was_put_under_a_prefix_and_nothing_else(server: Server) -> None:
    client = server.client
    client.put("range/a/1", b"one")
    client.put("range/a/2", bytes(range(256)))
    client.put("range/b", b"other")
    assert [(e.key, e.value) for e in client.range("range/a/")] == [
        ("range/a/1", b"one"),
        ("range/a/2", bytes(range(256))),
    ]


def test_empty_prefix_means_everything(server: Server) -> None:
    server.client.put("everything", b"")
    assert "everything" in {entry.key for entry in server.client.range("")}


def test_missing_key_is_none(server: Server) -> None:
    assert server.client.get("no/such/key") is None


def test_delete_counts_the_keys_under_a_prefix(server: Server) -> None:
    for name in ("delete/a", "delete/b"):
        server.client.put(name, b"x")
    assert server.client.delete("delete/", prefix=True) == 2
    assert server.client.range("delete/") == ()


def test_delete_of_an_empty_key_is_refused(server: Server) -> None:
    with pytest.raises(UsageError, match="everything"):
        server.client.delete("", prefix=True)


def test_keys_vanish_with_their_lease(server: Server) -> None:
    client = server.client
    lease = client.grant(600)
    client.put("leased", b"x", lease=lease.id)
    entry = client.get("leased")
    assert entry is not None
    assert entry.lease == lease.id
    client.revoke(lease.id)
    assert client.get("leased") is None


def test_lease_tells_its_time_left_and_is_kept_alive(server: Server) -> None:
    client = server.client
    lease = client.grant(1000)
    assert 0 < client.lease(lease.id).seconds_left <= 1000
    assert client.keep(lease.id).seconds_left > 0


def test_lease_that_ran_out_takes_its_key_with_it(server: Server) -> None:
    client = server.client
    client.put("short", b"x", lease=client.grant(5).id)
    until(lambda: client.get("short") is None, "the key went with its lease")


def test_revoked_lease_has_no_time_left(server: Server) -> None:
    client = server.client
    lease = client.grant(600)
    client.revoke(lease.id)
    assert client.lease(lease.id).seconds_left < 0
    assert client.keep(lease.id).seconds_left == 0


def test_members_and_status_name_the_one_server(server: Server) -> None:
    (member,) = server.client.members()
    status = server.client.status()[server.url]
    assert isinstance(status, Known)
    assert member.client_urls == (server.url,)
    assert status.value.member == status.value.leader == member.id
    assert status.value.version.startswith("3.")


def test_health_of_an_endpoint_that_refuses_is_unknown(server: Server) -> None:
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    health = Etcd((server.url, dead), seconds=120).health()
    assert value_of(health[server.url]) is True
    assert isinstance(health[dead], Unknown)


def test_next_endpoint_is_asked_when_the_first_refuses(server: Server) -> None:
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    assert Etcd((dead, server.url), seconds=120).get("no/such/key") is None


def test_error_names_every_endpoint_that_did_not_answer() -> None:
    one, two = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    with pytest.raises(Unreachable) as error:
        Etcd((one, two)).range("x")
    assert one in error.value.said
    assert two in error.value.said


def test_server_that_is_no_etcd_is_named() -> None:
    near, far = socket.socketpair()
    far.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html>hi<")
    client = Etcd(("http://etcd.example:2379",), opener=lambda _host, _port, _seconds: near)
    with far, pytest.raises(ToolError, match="not etcd's"):
        client.range("x")


def test_opener_carries_the_connection_to_a_name_only_it_can_reach(server: Server) -> None:
    seen: list[tuple[str, int]] = []

    def through(host: str, port: int, seconds: float) -> socket.socket:
        seen.append((host, port))
        return socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), seconds)

    client = Etcd(("http://etcd.cluster.example:2379",), opener=through, seconds=120)
    client.put("through", b"opener")
    assert seen == [("etcd.cluster.example", 2379)]
    assert server.client.get("through") is not None


def test_wrong_password_is_refused_and_the_right_one_reads(tmp_path: Path) -> None:
    with etcd_server(tmp_path) as own:
        _lock_up(own)
        right = Etcd((own.url,), user="root", password=Secret("s3cret"), seconds=120)
        wrong = Etcd((own.url,), user="root", password=Secret("other"), seconds=120)
        right.put("guarded", b"x")
        with pytest.raises(ToolError, match="authenticate"):
            wrong.get("guarded")
        with pytest.raises(ToolError, match="kv/range"):
            own.client.get("guarded")


def test_token_that_ran_out_is_renewed(tmp_path: Path) -> None:
    with etcd_server(tmp_path) as own:
        _lock_up(own)
        client = Etcd((own.url,), user="root", password=Secret("s3cret"), seconds=120)
        client._token = "stale.1"
        assert client.get("guarded") is None


def _lock_up(server: Server) -> None:
    """Switch authentication on, with one user that may do everything."""
    client = server.client
    client._call("auth/user/add", {"name": "root", "password": "s3cret"})
    client._call("auth/role/add", {"name": "root"})
    client._call("auth/user/grant", {"user": "root", "role": "root"})
    client._call("auth/enable", {})
