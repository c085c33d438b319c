"""What ~/.ssh/config adds to the inventory's word, and what it may not change."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from bringup.core.errors import UsageError
from bringup.core.host import Login
from bringup.edge import ssh_said
from bringup.edge.ssh_config import Endpoint, Resolver, Route, SshOptions
from tests.fleet.sshd import Sshd

from .reaching import ask as ask_host


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def route(login: Login, config: Path, **options: object) -> Route:
    return Resolver(SshOptions(config_file=config, **options)).route(login, "h1")  # type: ignore[arg-type]


def target(login: Login, config: Path, **options: object) -> Endpoint:
    return route(login, config, **options)[-1]


def test_configuration_fills_in_what_the_inventory_leaves_open(config: Path) -> None:
    config.write_text(
        "Host h1\n HostName 10.0.0.1\n Port 2200\n User deploy\n IdentityFile ~/.ssh/fleet\n"
        " HostKeyAlias alias\n UserKnownHostsFile /known/a /known/b\n"
    )
    found = target(Login("h1"), config)
    assert (found.address, found.port, found.user) == ("10.0.0.1", 2200, "deploy")
    assert found.key_files == (f"{ssh_said.home()}/.ssh/fleet",)
    assert found.place == "alias"
    assert found.known_hosts[:2] == ("/known/a", "/known/b")


def test_inventory_wins_over_the_configuration(config: Path) -> None:
    config.write_text("Host *\n Port 2200\n User deploy\n IdentityFile /k/theirs\n")
    found = target(Login("h1", port=2300, user="root", key_file="/k/ours"), config)
    assert (found.port, found.user, found.key_files) == (2300, "root", ("/k/ours",))


def test_include_and_match_mean_what_they_mean_to_ssh(config: Path, tmp_path: Path) -> None:
    config.write_text(f"Include {tmp_path}/more-*\nMatch host h* user root\n Port 2201\n")
    (tmp_path / "more-1").write_text("Host h1\n HostName included.example\n")
    found = target(Login("h1", user="root"), config)
    assert found.address == "included.example"
    assert target(Login("h2", user="root"), config).port == 2201
    assert target(Login("h2", user="guest"), config).port == 22


def test_proxy_jump_becomes_hops_with_users_and_ports_of_their_own(config: Path) -> None:
    config.write_text(
        "Host h1\n ProxyJump ann@gate1:2201,ben@gate2\nHost gate2\n HostName g2.lan\n"
    )
    hops = route(Login("h1", user="root"), config)
    assert [(hop.user, hop.address, hop.port) for hop in hops] == [
        ("ann", "gate1", 2201), ("ben", "g2.lan", 22), ("root", "h1", 22),
    ]  # fmt: skip


def test_first_jump_may_need_a_jump_itself(config: Path) -> None:
    config.write_text("Host h1\n ProxyJump inner\nHost inner\n ProxyJump outer\n")
    assert [hop.address for hop in route(Login("h1"), config)] == ["outer", "inner", "h1"]


def test_proxy_jump_none_goes_straight(config: Path) -> None:
    config.write_text("Host h1\n ProxyJump none\nHost *\n ProxyJump gate\n")
    assert [hop.address for hop in route(Login("h1"), config)] == ["h1"]


def test_gateway_of_the_inventory_replaces_proxy_jump(config: Path) -> None:
    config.write_text("Host h1\n ProxyJump theirs\n")
    login = Login("h1", gateway=(Login("ours", port=2222, user="ann"),))
    hops = [(hop.user, hop.address) for hop in route(login, config)]
    assert hops == [("ann", "ours"), (getpass.getuser(), "h1")]


def test_gateway_none_of_the_inventory_goes_straight(config: Path) -> None:
    config.write_text("Host h1\n ProxyJump theirs\n")
    assert [hop.address for hop in route(Login("h1", is_direct=True), config)] == ["h1"]


def test_jumps_in_circles_are_an_error(config: Path) -> None:
    config.write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(UsageError, match="circles"):
        route(Login("a"), config)


def test_proxy_command_gets_its_tokens(config: Path) -> None:
    config.write_text("Host h1\n HostName 10.0.0.1\n Port 7\n ProxyCommand nc %h %p %%\n")
    assert target(Login("h1"), config).proxy_command == "nc 10.0.0.1 7 %"


def test_default_identities_of_ssh_are_no_choice(config: Path) -> None:
    config.write_text("Host h1\n Port 2200\n")
    found = target(Login("h1"), config)
    assert found.key_files == ()
    assert found.search


@pytest.mark.parametrize("login", [Login("h1", key_file="/k/ours"), Login("h1", agent=True)])
def test_named_key_or_agent_ends_the_search(config: Path, login: Login) -> None:
    config.write_text("Host h1\n Port 2200\n IdentityFile /k/theirs\n CertificateFile /k/cert\n")
    found = target(login, config)
    assert not found.search
    assert "/k/theirs" not in found.key_files


def test_known_hosts_of_the_run_is_the_only_file(config: Path, tmp_path: Path) -> None:
    config.write_text("Host h1\n UserKnownHostsFile /known/a\n")
    found = target(Login("h1"), config, known_hosts=tmp_path / "known")
    assert found.known_hosts == (str(tmp_path / "known"),)


def test_configuration_can_be_left_out(config: Path) -> None:
    config.write_text("Host *\n Port 2200\n")
    found = target(Login("h1"), config, use_ssh_config=False)
    assert (found.port, found.user) == (22, getpass.getuser())


def test_broken_configuration_is_an_error_with_the_words_of_ssh(config: Path) -> None:
    config.write_text("Host h1\n Port many\n")
    with pytest.raises(UsageError, match="cannot read the SSH configuration for h1") as caught:
        target(Login("h1"), config)
    assert "line 2" in caught.value.said


def test_address_that_looks_like_an_option_is_none(config: Path) -> None:
    config.write_text("Host *\n Port 2200\n")
    with pytest.raises(UsageError):
        target(Login("-oProxyCommand=touch /tmp/owned"), config)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("Host *\n SendEnv LANG LC_*\n HashKnownHosts yes\n", False),
        ("Host a\n # Port 1\n", False),
        ("host a\n\tPORT=1\n", True),
        ("Match all\n", True),
        ("Host a\n ProxyJump b\n", True),
    ],
)
def test_ssh_is_asked_only_where_a_word_matters(text: str, expected: bool) -> None:
    assert ssh_said.matters(text) is expected


def test_word_in_an_included_file_matters(config: Path, tmp_path: Path) -> None:
    config.write_text(f"Include {tmp_path}/more-*\n")
    (tmp_path / "more-1").write_text("Host a\n Port 1\n")
    assert ssh_said.any_matters(config)


def test_ssh_is_asked_once_for_each_name(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("Host *\n Port 2200\n")
    asked: list[str] = []
    real = ssh_said.ask

    def ask(login: Login, file: Path | None) -> ssh_said.Said:
        asked.append(login.address)
        return real(login, file)

    monkeypatch.setattr(ssh_said, "ask", ask)
    resolver = Resolver(SshOptions(config_file=config))
    for _ in range(3):
        resolver.route(Login("h1"), "h1")
    assert asked == ["h1"]


# Where no ssh client is installed


@pytest.fixture
def no_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)


@pytest.mark.usefixtures("no_ssh")
def test_plain_configuration_is_read_without_an_ssh_client(config: Path) -> None:
    config.write_text("Host h1\n HostName 10.0.0.1\n Port 2200\n IdentityFile /k/one\n")
    found = target(Login("h1"), config)
    assert (found.address, found.port, found.key_files) == ("10.0.0.1", 2200, ("/k/one",))


@pytest.mark.usefixtures("no_ssh")
def test_include_without_an_ssh_client_is_an_error_and_not_ignored(config: Path) -> None:
    config.write_text("Include other\nHost h1\n Port 2200\n")
    with pytest.raises(UsageError, match="cannot follow Include"):
        target(Login("h1"), config)


# And over the wire


def test_host_is_reached_by_its_name_in_the_configuration(sshd: Sshd, config: Path) -> None:
    config.write_text(
        f"Host h1.lan\n HostName {sshd.address}\n Port {sshd.port}\n User {sshd.user}\n"
        f" IdentityFile {sshd.key}\n UserKnownHostsFile {sshd.known_hosts}\n"
    )
    host = sshd.host(address="h1.lan", port=22, user="", key_file="")
    assert ask_host(host, None, use_ssh_config=True, config_file=config) == "ready\n"


def test_host_is_reached_through_a_proxy_command(sshd: Sshd, config: Path) -> None:
    relay = f"python3 -c '{RELAY}' {sshd.port}"
    config.write_text(f"Host nowhere\n ProxyCommand {relay}\n HostKeyAlias h1\n")
    known = config.parent / "known"
    known.write_text(f"h1 {' '.join(sshd.known_hosts.read_text().split()[1:])}\n")
    host = sshd.host(address="nowhere", port=22)
    assert ask_host(host, known, use_ssh_config=True, config_file=config) == "ready\n"


RELAY = (
    "import os,socket,sys,threading;"
    's=socket.create_connection(("127.0.0.1",int(sys.argv[1])));'
    "f=lambda r,w:[w(d) for d in iter(lambda:r(4096),bytes())];"
    "threading.Thread(target=f,args=(lambda n:os.read(0,n),s.sendall),daemon=True).start();"
    "f(s.recv,lambda d:os.write(1,d))"
)
