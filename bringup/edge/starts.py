"""Earlier starts that came up, kept in the state folder: what remaining times are guessed by."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..readiness.budgets import Past
from .store import load_document, save_document

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = "bringup.starts/1"
KEPT = 400


def read_starts(folder: Path) -> tuple[Past, ...]:
    """Return all that is known, oldest first; a file that cannot be read tells nothing."""
    path = folder / "starts.json"
    if not path.exists():
        return ()
    try:
        rows = load_document(path, SCHEMA)["starts"]
        return tuple(Past(**row) for row in rows)
    except (UsageError, KeyError, TypeError):
        return ()


def add_starts(folder: Path, starts: Iterable[Past]) -> None:
    """Keep starts that came up, the newest `KEPT` of all."""
    new: list[dict[str, Any]] = [asdict(past) for past in starts]
    if not new:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "starts.lock"):
        old = [asdict(past) for past in read_starts(folder)]
        document = {"schema": SCHEMA, "starts": [*old, *new][-KEPT:]}
        save_document(folder / "starts.json", document)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two waits may end at the same time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
