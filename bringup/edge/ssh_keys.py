"""Host keys: which are known, by what file and line, and whether the one offered is to be trusted.

Names may be hashed, ``[host]:port`` or patterns; ``@revoked`` and ``@cert-authority`` are honoured.
A pin in the inventory outweighs every file. Format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ..core.errors import ToolError, Unreachable
from ..core.remote import Trusted
from .ssh_config import Endpoint


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key: its type by name, and its bytes on the wire."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.blob)

    @property
    def name(self) -> str:
        """Return the type as people say it."""
        return self.kind.removeprefix("ssh-").partition("-")[0].upper()


def fingerprint(blob: bytes) -> str:
    """Return ``SHA256:…`` as ssh-keygen -l prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a known_hosts file."""

    names: tuple[str, ...]
    key: HostKey
    marker: str
    file: str
    number: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"

    def covers(self, name: str) -> bool:
        """Say whether this line speaks of a name (in lower case)."""
        negated = any(n[:1] == "!" and like(name, n[1:]) for n in self.names)
        return not negated and any(_matches(n, name) for n in self.names)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _hash_matches(pattern, name)
    return like(name, pattern)


def like(name: str, pattern: str) -> bool:
    """Say whether a name fits a pattern of ssh: ``*`` and ``?`` only, brackets are themselves."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _hash_matches(pattern: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in pattern.split("|")[2:4])
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest)


def read_lines(text: str, file: str) -> Iterator[Line]:
    """Yield the lines of a known_hosts file that make sense; others are passed over, as by ssh."""
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except (ValueError, binascii.Error):
            continue
        names = tuple(n if n.startswith("|1|") else n.lower() for n in words[0].split(","))
        yield Line(names, HostKey(words[1], blob), marker, file, number)


class KnownHosts:
    """All files of host keys, each read once for the process; new keys are added to the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, _Index] = {}

    def about(self, endpoint: Endpoint) -> tuple[Line, ...]:
        """Return the lines about an endpoint; those about its plain name where port has none."""
        found = self._find(endpoint.known_hosts, endpoint.place)
        if found or not endpoint.place.startswith("["):
            return found
        return self._find(endpoint.known_hosts, endpoint.address.lower())

    def _find(self, files: Iterable[str], name: str) -> tuple[Line, ...]:
        return tuple(line for file in files for line in self._index(file).lines(name))

    def _index(self, file: str) -> _Index:
        with self._lock:
            if file not in self._files:
                self._files[file] = _Index(read_lines(_text(file), file))
            return self._files[file]

    def add(self, endpoint: Endpoint, key: HostKey) -> str:
        """Append a key to the first file, in one write; return ``file``."""
        file = endpoint.known_hosts[0]
        entry = f"{endpoint.place} {key.kind} {base64.b64encode(key.blob).decode()}\n"
        with self._lock:
            try:
                _append(Path(file), entry)
            except OSError as error:
                raise ToolError(
                    f"cannot record the host key of {endpoint.label} in {file}: {error.strerror}",
                    host=endpoint.label,
                ) from error
            self._files.pop(file, None)
        return file


class _Index:
    """The lines of one file: plain names by lookup, hashes and patterns by trying each."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._plain: dict[str, list[Line]] = {}
        self._others: list[Line] = []
        for line in lines:
            if any(n[:1] in "|!" or re.search(r"[*?]", n) for n in line.names):
                self._others.append(line)
                continue
            for name in line.names:
                self._plain.setdefault(name, []).append(line)

    def lines(self, name: str) -> Iterator[Line]:
        yield from self._plain.get(name, ())
        yield from (line for line in self._others if line.covers(name))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


def _append(path: Path, entry: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (("\n" if torn else "") + entry).encode())
        os.fsync(handle)
    finally:
        os.close(handle)


CERTIFICATE = "-cert-v01@openssh.com"


def preferred_kinds(lines: Iterable[Line], kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the key types to ask for: known ones first, since a server shows only one key."""
    lines = tuple(lines)
    all_kinds = tuple(kinds)
    known = {line.key.kind for line in lines if not line.marker}
    by_authority = any(line.marker == "@cert-authority" for line in lines)
    first = tuple(kind for kind in all_kinds if _plain(kind) in known)
    rest = tuple(kind for kind in all_kinds if kind not in first)
    certificates = tuple(kind + CERTIFICATE for kind in all_kinds) if by_authority else ()
    return certificates + first + rest


def _plain(kind: str) -> str:
    """An RSA key is ssh-rsa in files, whatever algorithm signs with it."""
    return "ssh-rsa" if kind.startswith("rsa-sha2-") else kind


def trust(
    endpoint: Endpoint, key: HostKey, known: KnownHosts, *, accept_new: bool, now: float
) -> Trusted:
    """Return by what the key offered is the host's; raise Unreachable that says why it is not."""
    lines = known.about(endpoint)
    for line in lines:
        if line.marker == "@revoked" and line.key.blob == key.blob:
            raise _refused(endpoint, key, f"the key is revoked ({line.place})", "")
    if endpoint.pin:
        _check_pin(endpoint, key)
        return Trusted("pinned", key.fingerprint)
    if key.kind.endswith(CERTIFICATE):
        _check_certificate(endpoint, key, lines, now)
        return Trusted("certified", key.fingerprint)
    plain = tuple(line for line in lines if not line.marker)
    if any(line.key.blob == key.blob for line in plain):
        return Trusted("known", key.fingerprint)
    if plain:
        raise _changed(endpoint, key, plain)
    if not accept_new:
        raise _unknown(endpoint, key)
    known.add(endpoint, key)
    return Trusted("first use", key.fingerprint)


def _check_pin(endpoint: Endpoint, key: HostKey) -> None:
    pins = endpoint.pin.replace(",", " ").split()
    if key.fingerprint in {pin.rstrip("=") for pin in pins}:
        return
    raise _refused(
        endpoint,
        key,
        f"its {key.name} key is {key.fingerprint}, the inventory wants {endpoint.pin}",
        "if the host was reinstalled, read the new fingerprint at its console"
        " (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub) and correct host_key:",
    )


def _changed(endpoint: Endpoint, key: HostKey, lines: tuple[Line, ...]) -> Unreachable:
    line = next((line for line in lines if line.key.kind == key.kind), lines[0])
    return _refused(
        endpoint,
        key,
        f"its host key has changed: known is {line.key.name} {line.key.fingerprint}"
        f" ({line.place}), offered is {key.name} {key.fingerprint}",
        "somebody may be in between. If the host was reinstalled, compare the new fingerprint at"
        f" its console, then: ssh-keygen -R '{endpoint.place}' -f {line.file}",
    )


def _unknown(endpoint: Endpoint, key: HostKey) -> Unreachable:
    return _refused(
        endpoint,
        key,
        f"its host key is not known: {key.name} {key.fingerprint}",
        f"compare it at the host's console (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub) or by"
        f" ssh-keyscan -p {endpoint.port} {endpoint.address} | ssh-keygen -lf - from a network"
        f" you trust; then set host_key: {key.fingerprint} in the inventory,"
        " or run once with --accept-new",
    )


def _refused(endpoint: Endpoint, key: HostKey, why: str, remedy: str) -> Unreachable:
    return Unreachable(
        f"cannot trust {endpoint.label} ({endpoint.address} port {endpoint.port}): {why}",
        host=endpoint.label,
        remedy=remedy or f"see the lines of {', '.join(endpoint.known_hosts)} for {key.name}",
    )


def _check_certificate(
    endpoint: Endpoint, key: HostKey, lines: tuple[Line, ...], now: float
) -> None:
    from .ssh_certificates import fault_of

    authorities = {line.key.blob for line in lines if line.marker == "@cert-authority"}
    revoked = {line.key.blob for line in lines if line.marker == "@revoked"}
    name = endpoint.known_as or endpoint.address
    why = fault_of(key, name, authorities=authorities, revoked=revoked, now=now)
    if why:
        raise _refused(endpoint, key, why, "ask whoever runs the authority for a new certificate")
