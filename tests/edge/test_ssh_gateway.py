"""Hosts behind jump hosts: one shared line a jump, and errors that name the hop at fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.errors import Unreachable
from bringup.core.host import Host, Login
from bringup.edge import ssh_lines
from bringup.edge.ssh import SshFleet, SshOptions, SshRemote
from tests.fleet import keys
from tests.fleet.fixtures import MakeSshd
from tests.fleet.sshd import Sshd, answers, free_port, launch

from .reaching import ask, reach
from .test_remote import eventually


def login(sshd: Sshd, **changes: object) -> Login:
    """Return a login that trusts exactly this server."""
    pin = keys.fingerprint(sshd.host_key)
    return replace(sshd.host().login, **{"host_key": pin, **changes})  # type: ignore[arg-type]


@pytest.fixture
def nothing(tmp_path: Path) -> Path:
    """A file of known hosts that is not there."""
    return tmp_path / "known"


def test_host_is_reached_through_a_gateway(sshd: Sshd, make_sshd: MakeSshd, nothing: Path) -> None:
    gate = make_sshd()
    host = Host("h1", login(sshd, gateway=(login(gate),)))
    assert ask(host, nothing) == "ready\n"
    assert "Accepted publickey" in gate.log


def test_host_is_reached_through_two_gateways(
    sshd: Sshd, make_sshd: MakeSshd, nothing: Path
) -> None:
    near, far = make_sshd(), make_sshd()
    host = Host("h1", login(sshd, gateway=(login(near), login(far))))
    with reach(host, nothing) as remote:
        assert remote.read("echo ready", seconds=60).stdout == "ready\n"
        assert [hop.port for hop in remote.line().route] == [near.port, far.port, sshd.port]


def test_gateway_is_one_connection_for_all_hosts_behind_it(
    sshd: Sshd, make_sshd: MakeSshd, nothing: Path
) -> None:
    gate = make_sshd()
    names = ("h1", "h2", "h3")
    hosts = {name: Host(name, login(sshd, gateway=(login(gate),))) for name in names}
    with SshFleet(hosts, SshOptions(known_hosts=nothing, use_ssh_config=False)) as fleet:
        for name in names:
            fleet.remote(name).read("true", seconds=60)
        cost = fleet.traffic()
    assert cost["gateway 127.0.0.1"].connections == 1
    assert [cost[name].connections for name in names] == [1, 1, 1]


def test_jump_of_the_configuration_is_taken(
    sshd: Sshd, make_sshd: MakeSshd, tmp_path: Path
) -> None:
    gate = make_sshd()
    known = tmp_path / "known"
    known.write_text(sshd.known_hosts.read_text() + gate.known_hosts.read_text())
    config = tmp_path / "config"
    config.write_text(
        f"Host *\n IdentityFile {gate.key}\nMatch host 127.0.0.1\n"
        f" ProxyJump {gate.user}@localhost:{gate.port}\n"
    )
    known.write_text(known.read_text() + f"localhost {keys.public(gate.host_key)}\n")
    with reach(sshd.host(), known, use_ssh_config=True, config_file=config) as remote:
        assert remote.read("echo ready", seconds=60).stdout == "ready\n"
        assert len(remote.line().route) == 2


def test_unknown_key_of_the_gateway_names_the_gateway(
    sshd: Sshd, make_sshd: MakeSshd, nothing: Path
) -> None:
    gate = make_sshd()
    host = Host("h1", login(sshd, gateway=(login(gate, host_key=""),)))
    with pytest.raises(Unreachable, match=r"cannot trust gateway 127\.0\.0\.1") as caught:
        ask(host, nothing)
    assert caught.value.host == "h1"


def test_refusing_gateway_names_the_gateway_for_every_host(sshd: Sshd, nothing: Path) -> None:
    gate = Login("127.0.0.1", port=free_port(), key_file=str(sshd.key))
    hosts = {name: Host(name, login(sshd, gateway=(gate,))) for name in ("h1", "h2")}
    with SshFleet(hosts, SshOptions(known_hosts=nothing, use_ssh_config=False)) as fleet:
        for name in hosts:
            with pytest.raises(Unreachable, match=r"cannot reach gateway .*refused") as caught:
                fleet.remote(name).read("true", seconds=60)
            assert caught.value.host == name


def refusal(remote: SshRemote) -> str:
    with pytest.raises(Unreachable) as caught:
        remote.read("true", seconds=60)
    return caught.value.message


def test_gateway_that_comes_back_is_dialled_again(
    sshd: Sshd, make_sshd: MakeSshd, nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_lines, "FAULT_S", 0.0)
    gate = make_sshd()
    host = Host("h1", login(sshd, gateway=(login(gate),)))
    with reach(host, nothing) as remote:
        remote.read("true", seconds=60)
        gate.kill()
        # lines that are lost are noticed as they are used; then the dial is refused
        assert eventually(lambda: "cannot reach gateway" in refusal(remote))
        gate.process = launch(gate.folder, gate.host_key, gate.port, gate.options)
        assert answers(gate)
        assert remote.read("echo ready", seconds=60).stdout == "ready\n"


def test_refused_connection_behind_a_gateway_names_both(
    sshd: Sshd, make_sshd: MakeSshd, nothing: Path
) -> None:
    gate = make_sshd()
    host = Host("h1", login(sshd, port=free_port(), gateway=(login(gate),)))
    with pytest.raises(Unreachable, match=r"cannot reach h1 .*through gateway .*Connect failed"):
        ask(host, nothing)


def test_gateway_that_forbids_forwarding_is_said(
    sshd: Sshd, make_sshd: MakeSshd, nothing: Path
) -> None:
    gate = make_sshd("AllowTcpForwarding=no")
    host = Host("h1", login(sshd, gateway=(login(gate),)))
    with pytest.raises(Unreachable, match=r"through gateway .*prohibited") as caught:
        ask(host, nothing)
    assert "AllowTcpForwarding" in caught.value.remedy
