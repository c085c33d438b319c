"""Images as people read them: the gate's findings, builds, ways to hosts, histories, rebases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.rules import Finding, Level
from ..image.context import InputChange
from ..image.gate import GateReport, GateStatus
from ..image.rebase import Meeting, Rebased
from ..image.record import Record
from ..image.route import Route, human

STYLES = {Level.BLOCK: "bold red", Level.WARN: "yellow", Level.NOTE: "cyan", Level.OK: "green"}


def findings_view(name: str, findings: Iterable[Finding]) -> RenderableType:
    """Return the static gate's findings: what was seen, why it matters, what to do."""
    parts: list[RenderableType] = [Text(name, "bold")]
    for finding in findings:
        line = Text(f"  {finding.level.value:<6}", STYLES[finding.level])
        line.append(f"{finding.id:<16}{finding.title}", "default")
        parts.append(line)
        if finding.level is Level.OK:
            line.append(f": {'; '.join(finding.evidence)}", "dim")
            continue
        parts += [Text(f"          {evidence}") for evidence in finding.evidence]
        parts.append(Text(f"          because {finding.reason}", "dim"))
        if finding.remedy:
            parts.append(Text(f"          do      {finding.remedy}", "bold"))
    return Group(*parts)


def gate_view(report: GateReport) -> RenderableType:
    """Return what the built image said to each check."""
    styles = {GateStatus.PASS: "green", GateStatus.FAIL: "bold red", GateStatus.NOT_RUN: "yellow"}
    table = Table(box=None, padding=(0, 2), show_header=False)
    for answer in report.answers:
        status = Text(answer.status.value, styles[answer.status])
        table.add_row("", status, answer.check, Text(answer.says))
    return table


def changes_view(name: str, why: str, different: Sequence[InputChange]) -> RenderableType:
    """Return whether a build is needed, and which inputs differ."""
    lines = [Text(f"{name}: {why}", "bold" if different else "default")]
    return Group(*lines, *(Text(f"  {change}") for change in different))


def built_view(reference: str, identity: str, why: str, record: Record | None) -> RenderableType:
    """Return how a build came out."""
    if record is None:
        return Text(f"{reference}: nothing to build: {why} ({identity[:19]})")
    return Group(
        Text(f"{reference} is {identity[:19]}, built in {record.seconds:.0f} s", "bold green"),
        Text(f"  because {why}"),
        Text(f"  kept as {record.kept}; log {record.log}", "dim"),
    )


def routes_view(
    reference: str, identity: str, routes: Iterable[Route], mirror: str = ""
) -> RenderableType:
    """Return by which way each host gets an image, and its base a mirror, before it is sent."""
    table = Table("host", "way", "sends about", "why", box=None, padding=(0, 2))
    for route in sorted(routes, key=lambda route: route.host):
        sends = human(route.sends) if route.sends else ""
        way = Text("cannot", "bold red") if route.trouble else Text(route.way.value)
        table.add_row(route.host, way, sends, route.trouble or route.why)
    told = [Text(f"  {mirror}", "dim")] if mirror else []
    return Group(Text(f"{reference} {identity[:19]}", "bold"), *told, table)


def shipped_view(rows: Iterable[tuple[Route, str, int, float]]) -> RenderableType:
    """Return how each host came out: the way, its image's ID, bytes sent, seconds."""
    table = Table("host", "way", "image", "sent", "seconds", box=None, padding=(0, 2))
    for route, identity, sent, seconds in rows:
        image = identity.removeprefix("sha256:")[:12] or Text("failed", "bold red")
        table.add_row(route.host, route.way.value, image, human(sent), f"{seconds:.1f}")
    return table


def history_view(
    name: str, records: Sequence[Record], current: str | None, why: str = ""
) -> RenderableType:
    """Return the builds of an image, newest first; ● marks the one its name stands for."""
    parts: list[RenderableType] = [Text(name, "bold")]
    if current is None:
        parts.append(Text(f"  which of them the name stands for is unknown: {why}", "yellow"))
    if not records:
        parts.append(Text("  no build is on record here"))
    for record in records:
        mark = "●" if record.id == current else " "
        image = record.id.removeprefix("sha256:")[:12]
        parts += [
            Text(f"{mark} {record.at}  {image}  on {record.where} by {record.by}"),
            Text(f"    base {record.base}", "dim"),
            Text(f"    pins {' '.join(record.pins)}", "dim"),
        ]
    return Group(*parts)


def kept_view(rows: Iterable[tuple[str, str, str, tuple[str, ...]]], verb: str) -> RenderableType:
    """Return what a rollback or prune did on each host: host, image, image before, names."""
    table = Table("host", "image", "was", verb, box=None, padding=(0, 2))
    for host, identity, was, names in rows:
        shown = (identity.removeprefix("sha256:")[:12], was.removeprefix("sha256:")[:12])
        table.add_row(host, *shown, " ".join(names) or "nothing")
    return table


def rebase_view(name: str, files: Iterable[Rebased]) -> RenderableType:
    """Return how each patched file stands to a new base, with both sides of every meeting."""
    parts: list[RenderableType] = [Text(f"{name}: patches and the new base", "bold")]
    for file in files:
        style = {Meeting.SAME: "green", Meeting.MERGED: "yellow", Meeting.TAKEN: "cyan"}
        parts.append(Text(f"  {file.meeting.value:<9}{file.file}", style.get(file.meeting, "red")))
        parts.append(Text(f"    was made for sha256 {file.old_sum}", "dim"))
        parts.append(Text(f"    new base has sha256 {file.new_sum or '(no such file)'}", "dim"))
        if file.meeting in (Meeting.MERGED, Meeting.CONFLICT):
            parts += [Text("    what the patch does"), Text(file.ours, "dim")]
            parts += [Text("    what the new base does"), Text(file.theirs, "dim")]
        if file.meeting is Meeting.CONFLICT:
            parts += [Text("    where they meet"), Text(file.merged.decode(errors="replace"))]
    return Group(*parts)
