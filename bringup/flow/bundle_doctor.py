"""Find out why a frontend does not list a model: ask everybody, then let the table decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from ..bundle.doctor import diagnose
from ..bundle.evidence import Evidence, Ready
from ..bundle.frontend_process import (
    LOG,
    PROCESS,
    FrontendProcess,
    log_ask,
    parse_log,
    parse_processes,
    process_ask,
)
from ..bundle.match import Held, Sums
from ..bundle.releases import release_of
from ..bundle.self_hosting import REACH, parse_reach, reach_ask
from ..core.errors import ToolError
from ..core.reading import Absent, Known, Reading, Unknown, value_of
from ..core.rules import Finding
from ..core.words import Word
from ..edge.bundle_files import summed
from ..edge.http import Opener, ask, direct
from ..edge.site import Site
from ..readiness.cards import Announced, Where
from .bundle import fetch_there, listed_there

T = TypeVar("T")

Look = Callable[[str, frozenset[str]], Held]
"""Returns the files of these names in a folder, as the frontend's process sees it.

Raises FileNotFoundError where there is no such folder, ToolError or another OSError where
nobody could look.
"""


@dataclass(frozen=True, slots=True)
class Frontend:
    """A frontend: where it answers, and what is known of how it was started."""

    url: str
    version: str = ""  # of ai-dynamo; "" when nobody knows
    model_path: str = ""  # its --model-path
    namespace: Reading[str] = field(default_factory=lambda: Unknown("nobody said"))
    processor: str = "dynamo"
    discovery: str = ""  # where it looks for workers


def gather(
    name: str,
    frontend: Frontend,
    *,
    announced: Callable[[], Announced],
    look: Look,
    log: Callable[[], str],
    opener: Opener = direct,
) -> Evidence:
    """Return everything that a diagnosis looks at; what nobody could see is unknown, and why."""
    found = _tried(announced)
    folders = _folders(name, value_of(found))
    return Evidence(
        name=name,
        announced=found,
        listed=_listed(frontend.url, opener),
        ready=_ready(frontend.url, name, opener),
        log=_tried(log),
        folders={folder: _held(look, folder, names) for folder, names in folders.items()},
        overlay=_held(look, frontend.model_path, frozenset().union(*folders.values()))
        if frontend.model_path
        else Absent("no --model-path"),
        release=release_of(frontend.version),
        namespace=frontend.namespace,
        processor=frontend.processor,
        discovery=frontend.discovery,
    )


def examine(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the diagnosis; here so that doors need no other import."""
    return diagnose(evidence)


def look_here(folder: str, names: frozenset[str]) -> Held:
    """Look at a folder on this machine, as a frontend that runs here does."""
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(folder)
    there = (name for name in names if (path / name).exists())
    return _summed({name: (path / name).read_bytes() for name in there})


def look_there(site: Site) -> Look:
    """Return the look at folders on a host, or inside a container of it."""

    def look(folder: str, names: frozenset[str]) -> Held:
        listing = listed_there(site, folder)
        if isinstance(listing, Absent):
            raise FileNotFoundError(folder)
        if isinstance(listing, Unknown):
            raise ToolError(f"cannot read {folder}: {listing.why}", host=site.name)
        found = listing.value.candidates
        chosen = tuple(one for one in found if one.name in names and one.sha256)
        return _summed(fetch_there(site, folder, chosen))

    return look


def find_frontend(site: Site, url: str, *, port: int | None = None) -> Reading[Frontend]:
    """Return the frontend behind a URL with its settings, seen from its host or its container.

    `port` is the one it listens on itself, where that is not the URL's.
    """
    wanted = port or urlsplit(url).port or 8000
    section = site.ask((process_ask(),))[PROCESS]
    found = parse_processes(section)
    if not isinstance(found, Known):
        return found
    for process in found.value:
        if process.port == wanted:
            return Known(_frontend(url, process), f"process {process.pid}")
    ports = ", ".join(str(process.port) for process in found.value)
    return Absent(f"no frontend there listens on port {wanted}; found: {ports}")


def _frontend(url: str, process: FrontendProcess) -> Frontend:
    return Frontend(
        url,
        process.version,
        process.model_path,
        Known(process.namespace, f"process {process.pid}"),
        process.processor,
        ", ".join(process.etcd) or process.discovery,
    )


def read_log(site: Site, words: tuple[Word, ...]) -> str:
    """Return the end of a frontend's log, given the command that prints it (`container_log`…).

    Raises ToolError where it cannot be read.
    """
    match parse_log(site.ask((log_ask(words),))[LOG]):
        case Known(text):
            return text
        case Unknown(why):
            raise ToolError(f"cannot read the frontend's log: {why}")
    raise ToolError("cannot read the frontend's log")


def reaches(site: Site, host: str, port: int) -> Reading[bool]:
    """Return whether the frontend's place reaches a worker's port: what self-hosting needs."""
    return parse_reach(site.ask((reach_ask(host, port),))[REACH])


def _summed(files: dict[str, bytes]) -> Held:
    return {name: Sums(len(data), summed(name, data).blake3) for name, data in files.items()}


def _folders(name: str, announced: Announced | None) -> dict[str, frozenset[str]]:
    """Return the folders that cards of a model name, with the names of their files there."""
    cards = announced.cards if announced else ()
    folders: dict[str, frozenset[str]] = {}
    for card in cards:
        if name in (card.name, *card.aliases):
            for file in (file for file in card.files if file.where is Where.FOLDER):
                folder = file.path.rpartition("/")[0]
                folders[folder] = folders.get(folder, frozenset()) | {file.name}
    return folders


def _held(look: Look, folder: str, names: frozenset[str]) -> Reading[Held]:
    try:
        return Known(look(folder, names), folder)
    except FileNotFoundError:
        return Absent(f"no folder {folder}")
    except ToolError as error:
        return Unknown(error.message)
    except OSError as error:
        return Unknown(f"cannot read {folder}: {error.strerror}")


def _tried(get: Callable[[], T]) -> Reading[T]:
    try:
        return Known(get())
    except ToolError as error:
        return Unknown(error.message)
    except OSError as error:
        return Unknown(f"cannot read {error.filename}: {error.strerror}")


def _listed(url: str, opener: Opener) -> Reading[tuple[str, ...]]:
    try:
        answer = ask(f"{url}/v1/models", opener=opener)
    except ToolError as error:
        return Unknown(error.message)
    match answer.document:
        case Known({"data": [*rows]}, evidence):
            return Known(tuple(str(row.get("id")) for row in rows), evidence)
    return Unknown(f"{url}/v1/models gives no list (HTTP {answer.status})", answer.text[:200])


def _ready(url: str, name: str, opener: Opener) -> Reading[Ready]:
    """Read the body, not the status: not ready is 200 in 1.3 and 503 from 1.6 on."""
    try:
        answer = ask(f"{url}/v1/models/{quote(name, safe='')}/ready", opener=opener)
    except ToolError as error:
        return Unknown(error.message)
    match answer.document:
        case Known({"ready": bool(ready), "namespaces": dict(namespaces)}, evidence):
            return Known(
                Ready(
                    ready,
                    _joined(namespaces.values(), "present"),
                    _joined(namespaces.values(), "missing_worker_types"),
                ),
                evidence,
            )
        case Known({"code": 404}, evidence):
            return Absent(evidence)
    return Unknown(f"no readiness in the answer (HTTP {answer.status})", answer.text[:200])


def _joined(rows: Iterable[dict[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(sorted({str(one) for row in rows for one in row.get(key) or ()}))
