"""Logging in: by key, certificate and agent, and what is said when the server refuses."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.core.errors import Unreachable
from bringup.edge import ssh_login
from tests.dynamo.processes import until
from tests.fleet import keys
from tests.fleet.fixtures import MakeSshd
from tests.fleet.sshd import Sshd

from .reaching import ask, reach


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real ssh-agent without keys; SSH_AUTH_SOCK points to it."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    try:
        until(lambda: path.exists() or process.poll() is not None, "the agent listens or ends")
        assert process.poll() is None
        yield path
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(autouse=True)
def _nobody_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor an agent of whoever runs the tests."""
    monkeypatch.setattr(ssh_login, "home", lambda: tmp_path / "home")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def ssh_add(*words: str) -> None:
    subprocess.run(["ssh-add", "-q", *words], check=True, timeout=60)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_key_file_of_each_kind_logs_in(make_sshd: MakeSshd, tmp_path: Path, kind: str) -> None:
    sshd = make_sshd()
    key = keys.make_key(tmp_path / kind, kind=kind)
    (sshd.folder / "authorized_keys").write_text(keys.public(key))
    assert ask(sshd.host(key_file=str(key)), sshd.known_hosts) == "ready\n"


def test_refused_key_is_named_with_its_user_and_fingerprint(sshd: Sshd, tmp_path: Path) -> None:
    key = keys.make_key(tmp_path / "stranger")
    with pytest.raises(Unreachable) as caught:
        ask(sshd.host(key_file=str(key)), sshd.known_hosts)
    assert f"the server refused {key} ({keys.fingerprint(key)})" in caught.value.message
    assert f"{getpass.getuser()}@127.0.0.1" in caught.value.message
    assert "authorized_keys" in caught.value.remedy


def test_wrong_user_is_named(sshd: Sshd) -> None:
    with pytest.raises(Unreachable, match=r"cannot log in to h1 \(no-such-user@127\.0\.0\.1"):
        ask(sshd.host(user="no-such-user"), sshd.known_hosts)


def test_missing_key_file_is_named(sshd: Sshd) -> None:
    with pytest.raises(Unreachable, match="/no/such/key: No such file"):
        ask(sshd.host(key_file="/no/such/key"), sshd.known_hosts)


def test_file_that_is_no_key_is_named(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("not a key")
    with pytest.raises(Unreachable, match=f"{tmp_path}/note: "):
        ask(sshd.host(key_file=str(tmp_path / "note")), sshd.known_hosts)


def test_nothing_to_try_says_what_to_set(sshd: Sshd) -> None:
    with pytest.raises(Unreachable, match="there is no key to try") as caught:
        ask(sshd.host(key_file=""), sshd.known_hosts)
    assert "key_file:" in caught.value.remedy


def test_key_in_its_usual_place_is_found_when_nobody_named_one(sshd: Sshd, tmp_path: Path) -> None:
    folder = tmp_path / "home/.ssh"
    folder.mkdir(parents=True)
    (folder / "id_ed25519").write_bytes(sshd.key.read_bytes())
    assert ask(sshd.host(key_file=""), sshd.known_hosts) == "ready\n"


def test_server_that_takes_no_keys_is_said(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("PubkeyAuthentication=no", "PasswordAuthentication=yes")
    with pytest.raises(Unreachable, match=r"the server takes .*password.* only"):
        ask(sshd.host(), sshd.known_hosts)


def test_server_that_wants_a_second_factor_is_said(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("AuthenticationMethods=publickey,password", "PasswordAuthentication=yes")
    with pytest.raises(Unreachable, match="a key is not enough there"):
        ask(sshd.host(), sshd.known_hosts)


# Certificates


@pytest.fixture
def trusting(make_sshd: MakeSshd, tmp_path: Path) -> tuple[Sshd, Path]:
    """A server that trusts an authority and no key, and that authority."""
    authority = keys.make_key(tmp_path / "authority")
    sshd = make_sshd(f"TrustedUserCAKeys={authority}.pub")
    (sshd.folder / "authorized_keys").write_text("")
    return sshd, authority


def test_certificate_beside_the_key_logs_in(trusting: tuple[Sshd, Path]) -> None:
    sshd, authority = trusting
    keys.sign_user(authority, sshd.key, getpass.getuser())
    assert ask(sshd.host(), sshd.known_hosts) == "ready\n"


def test_named_certificate_logs_in(trusting: tuple[Sshd, Path], tmp_path: Path) -> None:
    sshd, authority = trusting
    certificate = keys.sign_user(authority, sshd.key, getpass.getuser())
    elsewhere = certificate.rename(tmp_path / "elsewhere-cert.pub")
    host = sshd.host(certificate_file=str(elsewhere))
    assert ask(host, sshd.known_hosts) == "ready\n"


def test_certificate_of_an_rsa_key_logs_in(trusting: tuple[Sshd, Path], tmp_path: Path) -> None:
    sshd, authority = trusting
    key = keys.make_key(tmp_path / "rsa", kind="rsa")
    keys.sign_user(authority, key, getpass.getuser())
    assert ask(sshd.host(key_file=str(key)), sshd.known_hosts) == "ready\n"


def test_expired_certificate_is_named_as_refused(trusting: tuple[Sshd, Path]) -> None:
    sshd, authority = trusting
    path = keys.sign_user(authority, sshd.key, getpass.getuser(), validity="-2h:-1h")
    with pytest.raises(Unreachable, match=f"refused certificate {path}"):
        ask(sshd.host(), sshd.known_hosts)


# Agents


def test_agent_logs_in_when_asked_for(sshd: Sshd, agent: Path) -> None:
    ssh_add(str(sshd.key))
    assert ask(sshd.host(key_file="", agent=True), sshd.known_hosts) == "ready\n"


def test_agent_is_left_alone_when_a_key_is_named(sshd: Sshd, agent: Path, tmp_path: Path) -> None:
    ssh_add(str(sshd.key))
    key = keys.make_key(tmp_path / "stranger")
    with pytest.raises(Unreachable, match=f"refused {key}"):
        ask(sshd.host(key_file=str(key)), sshd.known_hosts)


def test_key_with_a_passphrase_is_used_by_the_agent_that_holds_it(
    make_sshd: MakeSshd, agent: Path, tmp_path: Path
) -> None:
    sshd = make_sshd()
    key = keys.make_key(tmp_path / "locked", passphrase="opensesame")
    (sshd.folder / "authorized_keys").write_text(keys.public(key))
    host = sshd.host(key_file=str(key))
    with pytest.raises(Unreachable, match=f"has a passphrase, .*ssh-add {key}"):
        ask(host, sshd.known_hosts)
    ask_pass = tmp_path / "ask"
    ask_pass.write_text("#!/bin/sh\necho opensesame\n")
    ask_pass.chmod(0o755)
    environment = {**os.environ, "SSH_ASKPASS": str(ask_pass), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", "-q", key], env=environment, check=True, timeout=60)
    assert ask(host, sshd.known_hosts) == "ready\n"


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_certificate_in_an_agent_logs_in(
    trusting: tuple[Sshd, Path], agent: Path, tmp_path: Path, kind: str
) -> None:
    sshd, authority = trusting
    key = keys.make_key(tmp_path / kind, kind=kind)
    keys.sign_user(authority, key, getpass.getuser())
    ssh_add(str(key))
    assert ask(sshd.host(key_file="", agent=True), sshd.known_hosts) == "ready\n"


def test_empty_agent_is_said(sshd: Sshd, agent: Path) -> None:
    with pytest.raises(Unreachable, match="the agent holds no key"):
        ask(sshd.host(key_file="", agent=True), sshd.known_hosts)


def test_missing_agent_is_said(sshd: Sshd) -> None:
    with pytest.raises(Unreachable, match="no agent runs"):
        ask(sshd.host(key_file="", agent=True), sshd.known_hosts)


# Cost


def test_read_is_one_connection_and_one_command(sshd: Sshd) -> None:
    with reach(sshd.host(), sshd.known_hosts) as remote:
        remote.read("echo ready", seconds=60)
        cost = remote.traffic()
    assert (cost.connections, cost.commands) == (1, 1)
    assert 0 < cost.sent < 10_000
    assert 0 < cost.received < 10_000
