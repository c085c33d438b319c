"""One look or many: show what was found, write the reports asked for, tell what changed."""

from __future__ import annotations

import time
from pathlib import Path

from . import __version__
from .core.errors import Exit, UsageError, gravest
from .core.host import Host
from .core.probed import Probed, by_verdict, document
from .core.rules import Verdict
from .edge.store import write_atomic
from .flow.open import moment, opened, read_inventory
from .flow.probe import Kept, changes, kept, last_kept, probe, replay
from .flow.types import Tools
from .options.hosts import HostSelection, Workspace
from .options.looking import Look
from .report.junit import junit
from .report.page import page
from .report.probe import age, probe_view
from .report.screen import Screen
from .report.summary import summary_document, summary_view


def look(screen: Screen, workspace: Workspace, hosts: HostSelection, wanted: Look) -> Exit:
    """Look as wanted and return the gravest exit code of the last look."""
    if wanted.from_:
        inventory = read_inventory(workspace.inventory)
        replayed = tuple(replay(inventory, Path(file)) for file in wanted.from_)
        for one in replayed:
            _emit(screen, one)
        return _tell(screen, replayed, wanted)
    with opened(workspace, hosts, screen.tell, deployment=wanted.deployment, deep=wanted.deep) as (
        tools,
        order,
    ):
        before = _before(wanted, tools, order.hosts)
        probed = probe(tools, order, probed_on=lambda one: _emit(screen, one))
        code = _tell(screen, probed, wanted)
        _tell_changes(screen, before, probed)
        while wanted.watch:
            before |= _seen(probed)
            time.sleep(wanted.watch)
            probed = probe(tools, order)
            _tell_changes(screen, before, probed)
            code = code_of(probed, strict=wanted.strict)
    return code


def _before(wanted: Look, tools: Tools, hosts: tuple[Host, ...]) -> dict[str, Kept]:
    if not wanted.changed_since:
        return last_kept(tools, hosts) if wanted.watch else {}
    if len(hosts) != 1:
        raise UsageError("cannot compare one capture with many hosts", remedy="name one host")
    return {hosts[0].name: kept(Path(wanted.changed_since))}


def _seen(probed: tuple[Probed, ...]) -> dict[str, Kept]:
    """Return what to compare the next look with; a host that was not seen keeps what it had."""
    at = moment()
    return {one.host: Kept(one.facts, at) for one in probed if one.facts.readings}


def code_of(probed: tuple[Probed, ...], *, strict: bool = False) -> Exit:
    """Return the exit code of a look: the gravest of its hosts."""
    bad = {Verdict.BLOCKED, Verdict.UNKNOWN} | ({Verdict.DEGRADED} if strict else set())
    codes = [one.error.code for one in probed if one.error is not None]
    codes += [Exit.BLOCKED for one in probed if one.error is None and one.verdict in bad]
    return gravest(codes)


def _emit(screen: Screen, one: Probed) -> None:
    """Give machines one host's object as soon as it is there."""
    screen.emit(lambda: document((one,), tool=__version__, at=moment()))


def _tell(screen: Screen, probed: tuple[Probed, ...], wanted: Look) -> Exit:
    at = moment()
    code = code_of(probed, strict=wanted.strict)
    screen.show(probe_view(probed, facts=wanted.facts, now=at))
    hosts = tuple(one for one in probed if one.is_host)
    counts = {verdict.value: len(them) for verdict, them in by_verdict(hosts).items()}
    screen.show(summary_view(counts))
    screen.emit(summary_document(counts, code))
    _write(wanted, probed, at)
    return code


def _write(wanted: Look, probed: tuple[Probed, ...], at: str) -> None:
    if wanted.junit:
        write_atomic(Path(wanted.junit), junit(probed, strict=wanted.strict).encode())
    if wanted.html:
        text = page(probed, tool=__version__, at=at, masked=wanted.masked)
        write_atomic(Path(wanted.html), text.encode())


def _tell_changes(screen: Screen, before: dict[str, Kept], probed: tuple[Probed, ...]) -> None:
    if not before:
        return
    at = moment()
    for host, found in changes({name: one.facts for name, one in before.items()}, probed):
        since = before[host].at
        told = f"  since {age(since, at)}" if since else ""
        lines = [f"  {change}" for change in found] or ["  nothing changed"]
        screen.show(f"\n{at}  {host}{told}", *lines)
        document = {"at": at, "host": host, "since": since or None, "changes": found}
        screen.emit({"schema": "bringup.changes/1", **document})
    for one in probed:
        if one.error is not None:
            screen.show(f"\n{at}  {one.host}\n  {one.error.message}")
