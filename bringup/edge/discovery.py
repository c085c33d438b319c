"""Reads what workers announce, from etcd or from the folder of file discovery."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import UsageError
from ..readiness.cards import CARDS, INSTANCES, Announced, key_of_file, read_discovery
from .etcd import Etcd


def read_etcd(client: Etcd) -> Announced:
    """Return cards and instances in etcd. Raises Unreachable, ToolError."""
    entries = (*client.range(CARDS), *client.range(INSTANCES))
    return read_discovery((entry.key, entry.value) for entry in entries)


def read_folder(folder: Path) -> Announced:
    """Return cards and instances in a folder that DYN_FILE_KV names.

    Raises UsageError when there is no such folder: that is not an empty discovery.
    """
    if not folder.is_dir():
        raise UsageError(
            f"cannot read discovery: {folder} is no folder",
            remedy="give the folder that DYN_FILE_KV names, or etcd's endpoints",
        )
    roots = (folder / prefix for prefix in (CARDS, INSTANCES))
    files = (path for root in roots for path in root.rglob("*") if path.is_file())
    entries = ((key_of_file(path.relative_to(folder).as_posix()), _bytes(path)) for path in files)
    return read_discovery((key, value) for key, value in entries if value is not None)


def _bytes(path: Path) -> bytes | None:
    """A worker may leave while we look."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
