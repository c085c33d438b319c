"""Look at hosts and judge what was seen; compare with an earlier look; replay a kept one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.capture import read_capture, replayed, written
from ..core.changes import Change, differences
from ..core.errors import ToolError, UsageError
from ..core.facts import Facts
from ..core.host import Host, Inventory, Login
from ..core.probed import Probed
from ..decide import assess, assess_deployment
from ..edge.store import answered_at, write_atomic
from ..probes import ALL
from ..probes.phrases import IGNORED, PHRASES
from ..probes.scope import every
from .gather import gather
from .provision import needed, probes_of
from .types import Order, Tools


def probe(
    tools: Tools, order: Order, *, probed_on: Callable[[Probed], None] = lambda _: None
) -> tuple[Probed, ...]:
    """Look at the ordered hosts; with a deployment, at its other hosts too, to compare them.

    `probed_on` hears of each host as soon as it is judged, then of the deployments.
    """
    ordered = {host.name: host for host in order.hosts}
    judged: dict[str, Probed] = {}

    def tell(name: str, found: Facts | ToolError) -> None:
        if name in ordered:
            judged[name] = _probed(tools, order, ordered[name], found)
            probed_on(judged[name])

    found = gather(tools, needed(order), probes_of(order), found_on=tell)
    facts = {name: one for name, one in found.items() if isinstance(one, Facts)}
    named = {deployment.name: deployment for deployment in order.deployments.values()}
    whole = tuple(
        Probed(name, assess_deployment(order.inventory, deployment, facts))
        for name, deployment in sorted(named.items())
    )
    for one in whole:
        probed_on(one)
    return (*(judged[name] for name in ordered), *whole)


def _probed(tools: Tools, order: Order, host: Host, found: Facts | ToolError) -> Probed:
    if isinstance(found, ToolError):
        return Probed(host.name, error=found, last_seen=tools.store.seen(host.name))
    deployment = order.deployments.get(host.name)
    findings = assess(order.inventory, host, found, deployment, deep=order.deep)
    return Probed(host.name, findings, found, host.kind)


def replay(inventory: Inventory, file: Path) -> Probed:
    """Judge a kept answer as if the host had given it now; nothing is contacted.

    Raises UsageError where the file is no capture.
    """
    capture = read_capture(_text(file), name=str(file))
    facts = replayed(capture, every())
    host = inventory.hosts.get(file.stem) or Host(file.stem, Login(""), kind=capture.kind)
    return Probed(host.name, assess(inventory, host, facts, None), facts, capture.kind)


@dataclass(frozen=True, slots=True)
class Kept:
    """Facts of an earlier look, and when it was; "" where nobody wrote that down."""

    facts: Facts
    at: str = ""


def kept(file: Path) -> Kept:
    """Return the facts in a capture or in a stored raw answer."""
    facts = replayed(read_capture(_text(file), name=str(file)), every())
    return Kept(facts, answered_at(file))


def last_kept(tools: Tools, hosts: Iterable[Host]) -> dict[str, Kept]:
    """Return what the store keeps from the last look at each host, where it has any."""
    files = {host.name: tools.store.facts_file(host.name) for host in hosts}
    return {name: kept(file) for name, file in files.items() if file.exists()}


def changes(
    before: Mapping[str, Facts], now: Iterable[Probed]
) -> tuple[tuple[str, tuple[Change, ...]], ...]:
    """Return what changed on each host since an earlier look; what moves by nature is left out."""
    volatile = {probe.fact for probe in ALL if probe.volatile}
    return tuple(
        (
            one.host,
            differences(
                before[one.host], one.facts, phrases=PHRASES, volatile=volatile, ignored=IGNORED
            ),
        )
        for one in now
        if one.host in before and one.error is None
    )


@dataclass(frozen=True, slots=True)
class Captured:
    """The files that were written, and the hosts that gave no answer."""

    files: tuple[Path, ...]
    errors: tuple[ToolError, ...] = ()


def capture(tools: Tools, order: Order, into: Path, *, about: str) -> Captured:
    """Keep the raw answer of each ordered host, identifiers masked, one file a host in a folder.

    A host that gives none is among the errors; the others' files are written.
    """
    found = gather(tools, order.hosts, probes_of(order))
    answered = [host for host in order.hosts if isinstance(found[host.name], Facts)]
    files = tuple(_captured(tools, order, host, into, about) for host in answered)
    errors = (found[host.name] for host in order.hosts)
    return Captured(files, tuple(error for error in errors if isinstance(error, ToolError)))


def _captured(tools: Tools, order: Order, host: Host, into: Path, about: str) -> Path:
    raw = tools.store.facts_file(host.name).read_text()
    text = written(
        raw,
        nonce=raw.partition("@@")[2].partition(" ")[0],
        tool=tools.version,
        kind=host.kind,
        about=about,
        hosts=tuple(order.inventory.hosts),
        users=(host.login.user,) if host.login.user else (),
    )
    file = into / f"{host.name}.txt"
    write_atomic(file, text.encode())
    return file


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}",
            remedy="make a capture with: bringup probe.capture --host HOST",
        ) from error
