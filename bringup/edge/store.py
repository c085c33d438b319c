"""What the controller keeps: facts with their age, receipts, saved plans. Plain files, atomic."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from ..core.errors import UsageError, unread


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all: staged beside it, flushed to disk, renamed over it.

    Raises UsageError where the folder cannot be made or written.
    """
    try:
        _write_atomic(path, content, mode)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            remedy="name a place that you may write and that has room (--state for facts)",
        ) from error


def _write_atomic(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    staged = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        staged.chmod(mode)
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class Store:
    """The state folder (`.bringup` by default). Names of hosts are checked by the inventory."""

    folder: Path

    def save_facts(self, host: str, raw: str, *, stamp: str) -> Path:
        """Keep the newest raw answer of a host, and the moment it was given (ISO 8601, UTC)."""
        path = self.facts_file(host)
        write_atomic(path, f"# bringup.answer/1 host={host} at={stamp}\n{raw}".encode())
        return path

    def facts_file(self, host: str) -> Path:
        """Return where the newest raw answer of a host is kept; it may not exist yet."""
        return self.folder / "facts" / host / "probe.txt"

    def seen(self, host: str) -> str:
        """Return when the newest kept answer of a host was given; "" where none is kept."""
        return answered_at(self.facts_file(host))

    def receipt_file(self, host: str, *, stamp: str) -> Path:
        """Return where a receipt of this moment goes; no other receipt lies there."""
        return fresh(self.folder / "receipts" / host, stamp)

    def receipts(self, host: str) -> tuple[Path, ...]:
        """Return the receipts of a host, oldest first."""
        return by_moment((self.folder / "receipts" / host).glob("*.json"))


def fresh(folder: Path, stamp: str) -> Path:
    """Return a JSON file named for a moment (ISO 8601) that does not exist yet."""
    name = stamp.replace("-", "").replace(":", "")
    path = folder / f"{name}.json"
    numbers = count(1)
    while path.exists():
        path = folder / f"{name}-{next(numbers)}.json"
    return path


def by_moment(files: Iterable[Path]) -> tuple[Path, ...]:
    """Return files by their moment, oldest first; those of one second by their number."""

    def age(file: Path) -> tuple[str, int]:
        moment, _, number = file.stem.partition("-")
        return moment, int(number) if number.isdigit() else 0

    return tuple(sorted(files, key=age))


def answered_at(file: Path) -> str:
    """Return the moment that a kept answer opens with; "" where it names none."""
    try:
        with file.open(errors="replace") as lines:
            found = re.search(r" at=(\S+)", lines.readline(400))
    except OSError:
        return ""
    return found[1] if found else ""


def save_document(path: Path, document: dict[str, Any]) -> None:
    """Write a document as indented JSON."""
    write_atomic(path, _json(document))


def load_document(path: Path, schema: str) -> dict[str, Any]:
    """Read a JSON document of one schema; raises UsageError for any other."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read {path}: {unread(error)}",
            remedy=f"name a file that bringup wrote (ls -l {path})",
        ) from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise UsageError(
            f"cannot read {path}: its schema is {found!r}, not {schema!r}",
            remedy="use the version of bringup that wrote it, or make it anew",
        )
    return dict(document)


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
