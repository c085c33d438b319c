"""Names of files in a bundle: relative, with / between parts, any bytes but NUL.

Bytes that are no UTF-8 stand as lone surrogates (`surrogateescape`), as Python reads them from
disk, so that every name goes out with the bytes that it came in with.
"""

from __future__ import annotations

import string

MARKER = ".bringup-bundle.json"
"""The manifest inside a bundle and in every folder made from one."""

_PLAIN = frozenset((string.ascii_letters + string.digits + "._-+/ ").encode())


def trouble(name: str) -> str:
    """Return why a name cannot be in a bundle, or ""."""
    parts = name.split("/")
    if not name or name.startswith("/") or "\0" in name:
        return "not a relative path"
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the folder"
    if name == MARKER:
        return "the manifest of an earlier bundle"
    return ""


def raw(name: str) -> bytes:
    """Return the bytes of a name as they stand on disk."""
    return name.encode("utf-8", "surrogateescape")


def from_raw(name: bytes) -> str:
    """Return the name that has these bytes on disk."""
    return name.decode("utf-8", "surrogateescape")


def escaped(name: str) -> str:
    """Return plain ASCII from which ``printf %b`` makes the bytes of a name."""
    return "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in raw(name))


def shown(name: str) -> str:
    """Return a name as people may see it: control characters and broken bytes escaped."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in name
    )
