"""Bundles, checks, pushes and diagnoses as people read them, and as machines do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..bundle.doctor import causes, is_sound
from ..bundle.manifest import Manifest
from ..bundle.names import shown
from ..bundle.reports import BundleReport, CheckReport, Placed, PushOutcome, Written
from ..core.rules import Finding, Level, Status
from ..edge.names import fold
from .grid import pairs
from .probe import finding_view

LEFT_SHOWN = 5


def made_view(report: BundleReport) -> RenderableType:
    """Return what went into a bundle, what stayed out, and which Dynamo can read it."""
    manifest = report.manifest
    grid = pairs()
    grid.add_row("wrote", f"{report.path}  sha256 {report.sha256[:12]}")
    grid.add_row("holds", f"{_files(manifest)} from {report.place}")
    grid.add_row("is", _identity(manifest))
    grid.add_row("left out", _left(report))
    grid.add_row("read by", _readers(report))
    notes = [f for f in report.findings if f.level is not Level.OK]
    return Group(grid, *(finding_view(finding) for finding in notes))


def made_document(report: BundleReport) -> dict[str, Any]:
    return {
        "schema": "bringup.bundle-made/1",
        "path": report.path,
        "sha256": report.sha256,
        "digest": report.manifest.digest,
        "manifest": report.manifest,
        "left": report.left,
        "findings": report.findings,
        "readers": {name: [f.id for f in blocks] for name, blocks in report.readers.items()},
    }


def _files(manifest: Manifest) -> str:
    return f"{len(manifest.files)} files, {manifest.size / 1e6:.2f} MB"


def _identity(manifest: Manifest) -> str:
    who = manifest.identity
    revision = f", revision {who.revision[:12]}" if who.revision else ""
    return f"{who.model_type or 'a model that does not say its type'}{revision}, {manifest.digest}"


def _left(report: BundleReport) -> str:
    size = sum(left.size for left in report.left) / 1e9
    if not report.left:
        return "nothing"
    by_why: dict[str, list[str]] = {}
    for left in report.left:
        by_why.setdefault(left.detail, []).append(shown(left.name))
    lines = (f"{_some(names)}: {why}" for why, names in by_why.items())
    return f"{len(report.left)} files, {size:.1f} GB\n" + "\n".join(lines)


def _some(names: list[str]) -> str:
    more = len(names) - LEFT_SHOWN
    return ", ".join(names[:LEFT_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _readers(report: BundleReport) -> str:
    return "\n".join(
        f"Dynamo {name}: "
        + ("yes" if not blocks else "no, " + ", ".join(finding.id for finding in blocks))
        for name, blocks in report.readers.items()
    )


def check_view(report: CheckReport) -> RenderableType:
    """Return how a bundle stands to a folder or to what workers announce."""
    lines: list[str] = []
    if report.cards:
        lines.append(f"compared with {len(report.cards)} cards of {report.cards[0].name}")
        lines += dict.fromkeys(str(mismatch) for mismatch in report.mismatches)
    if report.folder is not None:
        lines += [f"missing: {shown(name)}" for name in report.folder.missing]
        lines += [f"other bytes: {shown(name)}" for name in report.folder.changed]
        lines += [f"not in the bundle: {len(report.folder.extra)} files"] * bool(
            report.folder.extra
        )
    word = Text("fits", "bold green") if report.is_good else Text("does not fit", "bold red")
    title = word.append(f"  {report.path}  {_files(report.manifest)}", "default")
    return Group(title, *(Text(f"  {line}") for line in lines))


def check_document(report: CheckReport) -> dict[str, Any]:
    return {
        "schema": "bringup.bundle-check/1",
        "bundle": report.path,
        "digest": report.manifest.digest,
        "good": report.is_good,
        "mismatches": [str(mismatch) for mismatch in report.mismatches],
        "folder": report.folder,
    }


_STYLE = {
    PushOutcome.SAME: "dim",
    PushOutcome.CHANGED: "green",
    PushOutcome.WOULD_CHANGE: "yellow",
    PushOutcome.FAILED: "bold red",
}


def push_view(rows: Iterable[Placed], *, after: str = "") -> RenderableType:
    """Return a line for all targets that came out alike; `after` says what to do next."""
    grid = pairs()
    for (outcome, path, found), same in _alike(rows).items():
        hosts = fold([row.host for row in same])
        slowest = max(row.seconds for row in same)
        said = f"{hosts}:{path}  was: {found[:40] or 'not seen'}, {slowest:.1f} s"
        grid.add_row(Text(outcome.value, _STYLE[outcome]), said)
    return Group(grid, Text(after, "green")) if after else grid


def _alike(rows: Iterable[Placed]) -> dict[tuple[PushOutcome, str, str], list[Placed]]:
    alike: dict[tuple[PushOutcome, str, str], list[Placed]] = {}
    for row in rows:
        alike.setdefault((row.outcome, row.path, row.found), []).append(row)
    return alike


def push_document(row: Placed) -> dict[str, Any]:
    return {
        "schema": "bringup.bundle-push/1",
        "host": row.host,
        "path": row.path,
        "outcome": row.outcome.value,
        "found": row.found,
        "seconds": round(row.seconds, 3),
        "sent": row.sent,
    }


def kubernetes_view(written: Written, *, applied: bool) -> RenderableType:
    """Return where the patch is, and the commands that apply it."""
    files = [path for path in (written.objects_file, written.patch_file) if path]
    grid = pairs()
    grid.add_row("wrote", ", ".join(files))
    grid.add_row("applied" if applied else "to apply", written.commands)
    return grid


def diagnosis_view(name: str, findings: tuple[Finding, ...]) -> RenderableType:
    """Return the causes first; then, where there are none, what nobody could look at."""
    return Group(_verdict(name, findings), *_told(findings))


def _verdict(name: str, findings: tuple[Finding, ...]) -> Text:
    wrong = causes(findings)
    if any(finding.status is Status.FAIL for finding in wrong):
        return Text(f"{name} is not served", "bold red")
    if wrong:
        return Text(f"{name} is served, and would not be by a frontend started anew", "bold yellow")
    if is_sound(findings):
        return Text(f"{name} is listed, and nothing is wrong", "bold green")
    return Text(f"{name}: not all could be looked at", "bold yellow")


def _told(findings: tuple[Finding, ...]) -> Iterator[RenderableType]:
    unknown = (finding for finding in findings if finding.status is Status.UNKNOWN)
    told = causes(findings) or (() if is_sound(findings) else tuple(unknown))
    yield from (finding_view(finding) for finding in told)


def diagnosis_document(name: str, findings: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "schema": "bringup.bundle-doctor/1",
        "model": name,
        "causes": [finding.id for finding in causes(findings)],
        "findings": findings,
    }
