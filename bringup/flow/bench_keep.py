"""Keep runs over topologies in the state folder, find those to go on with, and tell what they hold.

One folder a deployment, `bench/DEPLOYMENT/`, one document a run, written anew after each topology.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..bench.table import SCHEMA, Bench, document, read
from ..core.errors import Blocked, ToolError
from ..edge.store import load_document, save_document, write_atomic
from .types import Tools


def folder_of(tools: Tools, deployment: str) -> Path:
    return Path(tools.store.folder) / "bench" / deployment


def base_of(tools: Tools, bench: Bench) -> Path:
    """Return the path of a run's files, without an ending."""
    stamp = bench.at.replace("-", "").replace(":", "")
    return folder_of(tools, bench.deployment) / stamp


def kept(tools: Tools, deployment: str) -> tuple[Bench, ...]:
    """Return the runs that are kept of a deployment, oldest first; damaged ones are left out."""
    found = []
    for path in sorted(folder_of(tools, deployment).glob("*.json")):
        with contextlib.suppress(ToolError, KeyError, TypeError, ValueError):
            found.append(read(load_document(path, SCHEMA)))
    return tuple(found)


def all_kept(folder: Path) -> tuple[Bench, ...]:
    """Return the runs of all deployments, oldest first."""
    found = []
    for path in (folder / "bench").glob("*/*.json"):
        with contextlib.suppress(ToolError, KeyError, TypeError, ValueError):
            found.append(read(load_document(path, SCHEMA)))
    return tuple(sorted(found, key=lambda bench: bench.at))


def keep(tools: Tools, bench: Bench) -> Path:
    """Keep a run as it stands; return its document's file."""
    path = base_of(tools, bench).with_suffix(".json")
    save_document(path, document(bench))
    return path


def keep_page(tools: Tools, bench: Bench, page: str) -> Path:
    """Keep a run's page beside it; return the file."""
    path = base_of(tools, bench).with_suffix(".html")
    write_atomic(path, page.encode())
    return path


def keep_log(tools: Tools, bench: Bench, topology: str, lines: list[str]) -> str:
    """Keep the log of a start that failed; return the file."""
    base = base_of(tools, bench)
    path = base.with_name(f"{base.name}-{topology}.log")
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode())
    return str(path)


@contextmanager
def alone(tools: Tools, deployment: str) -> Iterator[None]:
    """Let one run at a time measure a deployment from this state folder; raises Blocked."""
    folder = folder_of(tools, deployment)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Blocked(
                f"cannot measure {deployment}: another bench.topologies is at it",
                remedy="wait for it; two at a time would measure each other",
            ) from None
        yield
