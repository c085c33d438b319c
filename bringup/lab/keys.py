"""The fleet's keys: one for the operator, one for each host, all ed25519."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def settle(folder: Path, hosts: tuple[str, ...]) -> None:
    """Make the keys that are not there yet."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("operator", *(f"host-{host}" for host in hosts)):
        if not ((folder / name).is_file() and (folder / f"{name}.pub").is_file()):
            _make(folder / name)


def public(folder: Path, name: str) -> str:
    """Return a public key: ``ssh-ed25519 AAAA…``."""
    return " ".join((folder / f"{name}.pub").read_text().split()[:2])


def fingerprint(line: str) -> str:
    """Return a public key's fingerprint as `ssh-keygen -l` prints it."""
    sum256 = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(sum256).decode().rstrip("=")


def _make(path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    shown = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(secret)
    path.with_name(path.name + ".pub").write_text(f"{shown.decode()} {path.name}\n")
