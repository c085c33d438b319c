"""Package repositories of an inventory: what is wrong with them, and the keys that sign them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ..core.host import Repository
from .inventory_roster import Fault
from .names import NAME
from .schema import KeyEntry, RepositoryEntry

ARMOURED = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
BINARY = (0x98, 0x99, 0xC6)
"""First bytes of an OpenPGP public key without armour (RFC 9580, section 4.2)."""


def faults(entries: dict[str, RepositoryEntry], folder: Path | None) -> Iterator[Fault]:
    """Yield what is wrong; key files are looked at where the inventory's folder is known."""
    for name, entry in entries.items():
        path = ("repositories", name)
        if not NAME.fullmatch(name):
            yield path, f"{name!r} is no name of letters, digits, dots and dashes"
        if entry.uri is None:
            yield (*path, "uri"), "is missing"
        yield from (((*path, *at), text) for at, text in _suites(entry))
        if entry.key is None:
            yield (*path, "key"), "is missing: {file: …, sha256: …}, or {fingerprint: …}"
        else:
            yield from (((*path, "key", *at), text) for at, text in _key(entry.key, folder))


def _suites(entry: RepositoryEntry) -> Iterator[Fault]:
    suites = entry.suites or []
    flat = [suite for suite in suites if suite.endswith("/")]
    if flat and entry.components:
        yield ("components",), f"go with no suite that ends in /, as {flat[0]!r} does"
    if suites and not flat and not entry.components:
        yield ("components",), f"are missing: a suite such as {suites[0]!r} has some, as in [main]"
    for key in ("suites", "components", "systems", "packages"):
        for word in getattr(entry, key) or ():
            if key != "systems" and " " in word:
                yield (key,), f"should be single words, not {word!r}"


def _key(key: KeyEntry, folder: Path | None) -> Iterator[Fault]:
    if key.file is None and key.fingerprint is None:
        yield (), "names no file and no fingerprint: one of them is needed"
    if key.file is not None and key.fingerprint is not None:
        yield (), "should name a file or a fingerprint, not both"
    if key.file is None or key.fingerprint is not None:
        return
    content = _read(folder / Path(key.file).expanduser()) if folder else None
    if folder and content is None:
        yield ("file",), f"there is no such file: {folder / key.file}"
    if content is not None and not is_key(content):
        yield ("file",), "is no OpenPGP public key (gpg --armor --export writes one)"
    found = hashlib.sha256(content).hexdigest() if content is not None else ""
    if key.sha256 is None:
        yield ("sha256",), f"is missing{': the file has ' + found if found else ''}"
    elif found and key.sha256 != found:
        yield ("sha256",), f"is {key.sha256}, and the file has {found}"


def is_key(content: bytes) -> bool:
    """Tell whether bytes are an OpenPGP public key, armoured or not, by their beginning."""
    return content.lstrip().startswith(ARMOURED) or content[:1] in [bytes([b]) for b in BINARY]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def build(entries: dict[str, RepositoryEntry], folder: Path) -> tuple[Repository, ...]:
    """Return the repositories, by name. Only for a file without faults."""
    return tuple(_one(name, entry, folder) for name, entry in sorted(entries.items()))


def _one(name: str, entry: RepositoryEntry, folder: Path) -> Repository:
    key = entry.key or KeyEntry()
    content = _read(folder / Path(key.file).expanduser()) if key.file else b""
    return Repository(
        name, entry.uri or "", tuple(entry.suites or ()), tuple(entry.components or ()),
        content or b"", key.fingerprint or "", tuple(entry.packages or ()),
        tuple(entry.systems or ()),
    )  # fmt: skip
