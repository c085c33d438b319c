"""Which host keys are trusted, and what is said about the others."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.errors import Unreachable
from bringup.core.host import Host
from bringup.core.remote import Trusted
from bringup.edge import ssh_keys
from bringup.edge.ssh_config import Endpoint
from bringup.edge.ssh_keys import HostKey, KnownHosts, read_lines
from tests.fleet import keys
from tests.fleet.fixtures import MakeSshd
from tests.fleet.sshd import Sshd

from .reaching import ask, reach


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


@pytest.fixture(scope="session")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host key that no server has."""
    return keys.make_key(tmp_path_factory.mktemp("other") / "key")


def name(sshd: Sshd) -> str:
    return f"[{sshd.address}]:{sshd.port}"


def test_unknown_key_is_refused_with_its_fingerprint_and_both_ways_out(
    sshd: Sshd, known: Path
) -> None:
    with pytest.raises(Unreachable) as caught:
        ask(sshd.host(), known)
    assert f"is not known: ED25519 {keys.fingerprint(sshd.host_key)}" in caught.value.message
    assert "ssh-keyscan" in caught.value.remedy
    assert "--accept-new" in caught.value.remedy
    assert not known.exists()


def test_accept_new_records_the_key_for_the_next_run(sshd: Sshd, known: Path) -> None:
    known.write_text("# no newline at the end")
    assert ask(sshd.host(), known, accept_new=True) == "ready\n"
    assert ask(sshd.host(), known) == "ready\n"
    public = " ".join(keys.public(sshd.host_key).split()[:2])
    assert known.read_text() == f"# no newline at the end\n{name(sshd)} {public}\n"


def test_accept_new_makes_a_file_that_only_its_owner_reads(sshd: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "new/known_hosts"
    ask(sshd.host(), path, accept_new=True)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("accept_new", [False, True])
def test_changed_key_is_refused_naming_both_fingerprints_and_the_line(
    sshd: Sshd, known: Path, other_key: Path, accept_new: bool
) -> None:
    text = f"# line 1\n{name(sshd)} {keys.public(other_key)}\n"
    known.write_text(text)
    with pytest.raises(Unreachable) as caught:
        ask(sshd.host(), known, accept_new=accept_new)
    for part in ("has changed", keys.fingerprint(other_key), keys.fingerprint(sshd.host_key),
                 f"{known}:2"):  # fmt: skip
        assert part in caught.value.message
    assert f"ssh-keygen -R '{name(sshd)}' -f {known}" in caught.value.remedy
    assert known.read_text() == text


def test_pin_in_the_inventory_needs_no_file(sshd: Sshd, known: Path) -> None:
    pinned = sshd.host(host_key=keys.fingerprint(sshd.host_key))
    assert ask(pinned, known) == "ready\n"
    assert not known.exists()


def test_pin_wins_over_a_wrong_line(sshd: Sshd, known: Path, other_key: Path) -> None:
    known.write_text(f"{name(sshd)} {keys.public(other_key)}\n")
    assert ask(sshd.host(host_key=keys.fingerprint(sshd.host_key)), known) == "ready\n"


def test_wrong_pin_is_refused_though_the_file_knows_the_key(sshd: Sshd, other_key: Path) -> None:
    pin = keys.fingerprint(other_key)
    with pytest.raises(Unreachable) as caught:
        ask(sshd.host(host_key=pin), sshd.known_hosts, accept_new=True)
    assert pin in caught.value.message
    assert keys.fingerprint(sshd.host_key) in caught.value.message


def test_hashed_names_are_found(sshd: Sshd, known: Path) -> None:
    known.write_text(f"{name(sshd)} {keys.public(sshd.host_key)}\n")
    keys.keygen("-H", "-f", str(known))
    assert known.read_text().startswith("|1|")
    assert ask(sshd.host(), known) == "ready\n"


def test_line_without_a_port_counts_for_every_port(sshd: Sshd, known: Path) -> None:
    known.write_text(f"{sshd.address} {keys.public(sshd.host_key)}\n")
    assert ask(sshd.host(), known) == "ready\n"


def test_revoked_key_is_refused_though_pinned(sshd: Sshd, known: Path) -> None:
    public = keys.public(sshd.host_key)
    known.write_text(f"{name(sshd)} {public}\n@revoked * {public}\n")
    with pytest.raises(Unreachable, match=rf"revoked \({known}:2\)"):
        ask(sshd.host(host_key=keys.fingerprint(sshd.host_key)), known)


def test_server_with_two_keys_is_asked_for_the_known_one(
    make_sshd: MakeSshd, known: Path, tmp_path: Path
) -> None:
    ecdsa = keys.make_key(tmp_path / "ecdsa", kind="ecdsa")
    sshd = make_sshd(f"HostKey={ecdsa}")
    known.write_text(f"{name(sshd)} {keys.public(ecdsa)}\n")
    assert ask(sshd.host(), known) == "ready\n"


def test_key_of_a_kind_not_known_counts_as_changed(sshd: Sshd, known: Path, tmp_path: Path) -> None:
    ecdsa = keys.make_key(tmp_path / "ecdsa", kind="ecdsa")
    known.write_text(f"{name(sshd)} {keys.public(ecdsa)}\n")
    with pytest.raises(Unreachable, match="has changed: known is ECDSA"):
        ask(sshd.host(), known, accept_new=True)


# Certificates of hosts


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return keys.make_key(tmp_path / "authority")


@pytest.mark.parametrize(
    ("names", "validity", "why"),
    [
        (("127.0.0.1",), "-1h:+1h", ""),
        (("127.0.0.*", "x"), "-1h:+1h", ""),
        (("other",), "-1h:+1h", "is for other, not for 127.0.0.1"),
        (("127.0.0.1",), "-2h:-1h", "expired"),
        (("127.0.0.1",), "+1h:+2h", "not valid yet"),
    ],
)
def test_host_certificate_is_judged_by_name_and_time(
    make_sshd: MakeSshd, authority: Path, known: Path, tmp_path: Path,
    names: tuple[str, ...], validity: str, why: str,
) -> None:  # fmt: skip
    host_key = keys.make_key(tmp_path / "host_key")
    certificate = keys.sign_host(authority, host_key, *names, validity=validity)
    sshd = make_sshd(f"HostCertificate={certificate}", host_key=host_key)
    known.write_text(f"@cert-authority {name(sshd)} {keys.public(authority)}\n")
    if not why:
        assert ask(sshd.host(), known) == "ready\n"
        return
    with pytest.raises(Unreachable, match=why):
        ask(sshd.host(), known)


def test_certificate_of_another_authority_is_refused(
    make_sshd: MakeSshd, authority: Path, known: Path, tmp_path: Path, other_key: Path
) -> None:
    host_key = keys.make_key(tmp_path / "host_key")
    certificate = keys.sign_host(other_key, host_key, "127.0.0.1")
    sshd = make_sshd(f"HostCertificate={certificate}", host_key=host_key)
    known.write_text(f"@cert-authority {name(sshd)} {keys.public(authority)}\n")
    with pytest.raises(Unreachable, match="authority that known_hosts does not list"):
        ask(sshd.host(), known, accept_new=True)


def test_remote_tells_by_what_the_key_was_accepted(
    sshd: Sshd, make_sshd: MakeSshd, authority: Path, known: Path, tmp_path: Path
) -> None:
    said = keys.fingerprint(sshd.host_key)
    host_key = keys.make_key(tmp_path / "host_key")
    certified = make_sshd(
        f"HostCertificate={keys.sign_host(authority, host_key, '127.0.0.1')}", host_key=host_key
    )
    assert accepted(sshd.host(host_key=said), known) == Trusted("pinned", said)
    assert accepted(sshd.host(), known, accept_new=True) == Trusted("first use", said)
    assert accepted(sshd.host(), known) == Trusted("known", said)
    known.write_text(f"@cert-authority {name(certified)} {keys.public(authority)}\n")
    told = accepted(certified.host(), known)
    assert told is not None
    assert told.by == "certified"


def accepted(host: Host, known: Path, **options: object) -> Trusted | None:
    with reach(host, known, **options) as remote:
        assert remote.trusted() is None
        remote.read("true", seconds=60)
        return remote.trusted()


@pytest.mark.parametrize("revoked", ["authority", "host_key"])
def test_revoked_authority_or_key_makes_a_certificate_void(
    make_sshd: MakeSshd, authority: Path, known: Path, tmp_path: Path, revoked: str
) -> None:
    host_key = keys.make_key(tmp_path / "host_key")
    certificate = keys.sign_host(authority, host_key, "127.0.0.1")
    sshd = make_sshd(f"HostCertificate={certificate}", host_key=host_key)
    known.write_text(
        f"@cert-authority {name(sshd)} {keys.public(authority)}\n"
        f"@revoked * {keys.public(tmp_path / revoked)}\n"
    )
    with pytest.raises(Unreachable, match="revoked"):
        ask(sshd.host(), known)


def test_certificate_of_a_user_is_no_certificate_of_a_host(tmp_path: Path, authority: Path) -> None:
    from bringup.edge.ssh_certificates import fault_of

    key = keys.make_key(tmp_path / "key")
    kind, text = keys.sign_user(authority, key, "h1").read_text().split()[:2]
    (line,) = read_lines(f"h1 {kind} {text}", "file")
    (signer,) = read_lines(f"h1 {keys.public(authority)}", "file")
    why = fault_of(line.key, "h1", authorities={signer.key.blob}, revoked=set(), now=time.time())
    assert why == "it offers a user's certificate"


# The format of the file

BLOB = "AAAAC3NzaC1lZDI1NTE5AAAAINoqPIJjvDk0NCyA+hUaoRbZfymWRkq/MIwZ+YbZI56y"


@pytest.mark.parametrize(
    ("names", "asked", "found"),
    [
        ("b300-04", "b300-04", True),
        ("B300-04,10.0.0.4", "b300-04", True),
        ("b300-*", "b300-04", True),
        ("b300-?", "b300-04", False),
        ("b300-*,!b300-04", "b300-04", False),
        ("b300-*,!b300-04", "b300-05", True),
        ("[b300-04]:2222", "[b300-04]:2222", True),
        ("[b300-04]:2222", "b300-04", False),
        ("[b300-*]:2222", "[b300-04]:2222", True),
        ("|1|not%base64|at", "b300-04", False),
    ],
)
def test_names_of_a_line_match_as_in_ssh(names: str, asked: str, found: bool) -> None:
    (line,) = read_lines(f"{names} ssh-ed25519 {BLOB} comment", "file")
    assert line.covers(asked) is found


@pytest.mark.parametrize("text", ["", "# note", "only two", "h1 ssh-ed25519 %%%", "@revoked h1"])
def test_lines_that_make_no_sense_are_passed_over(text: str) -> None:
    assert list(read_lines(text, "file")) == []


def test_each_file_is_read_once_for_all_hosts(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known.write_text(f"h1,h2 ssh-ed25519 {BLOB}\n")
    reads: list[str] = []
    real = ssh_keys._text

    def text(file: str) -> str:
        reads.append(file)
        return real(file)

    monkeypatch.setattr(ssh_keys, "_text", text)
    book = KnownHosts()
    base = Endpoint("h1", "h1", 22, "root", known_hosts=(str(known),))
    for address in ("h1", "h2", "h1"):
        assert len(book.about(replace(base, address=address))) == 1
    assert reads == [str(known)]


def test_two_adds_at_once_are_both_kept(known: Path) -> None:
    base = Endpoint("h1", "h1", 22, "root", known_hosts=(str(known),))
    books = KnownHosts(), KnownHosts()
    for book, address in zip(books, ("h1", "h2"), strict=True):
        book.about(base)
        book.add(replace(base, address=address), HostKey("ssh-ed25519", b"blob"))
    assert [line.split()[0] for line in known.read_text().splitlines()] == ["h1", "h2"]
