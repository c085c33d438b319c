"""Copies and checks of weights as people read them, and as machines do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.event import Event
from ..edge.names import fold
from ..weights.compare import Fault
from ..weights.folder import Folder
from ..weights.plan import HostPlan, Way, duration, size
from .grid import pairs

SHOWN = 4


def plan_view(
    source: str, folder: Folder, plans: Iterable[HostPlan], *, way: Way, seconds: float,
    rate_mb_s: float, left_out: tuple[str, ...] = (), notes: tuple[str, ...] = (),
) -> RenderableType:  # fmt: skip
    """Return what would be copied where: source, a line for hosts that lack the same, the time."""
    rows = tuple(plans)
    grid = pairs()
    index = f", index {folder.index}" if folder.index else ""
    revision = f", revision {folder.revision[:12]}" if folder.revision else ""
    weights = f"{len(folder.weights)} weight files, {size(folder.weight_bytes)}{index}{revision}"
    grid.add_row("from", f"{source}\n{weights}")
    if left_out:
        grid.add_row("left out", f"{_some(left_out)}: no index names them (--every takes them too)")
    for note in notes:
        grid.add_row("note", note)
    for text, same in _alike(rows).items():
        grid.add_row(_word(same[0]), f"{fold([row.host for row in same])}:{same[0].path}  {text}")
    total = sum(row.bytes for row in rows if row.is_change and not row.trouble)
    if total:
        what = (
            f"{size(total)} in about {duration(seconds)}, {way.value}, if {rate_mb_s:.0f} MB/s pass"
        )
        grid.add_row("to copy", what)
    return grid


def _word(row: HostPlan) -> Text:
    if row.trouble:
        return Text("cannot", "bold red")
    return Text("copy", "yellow") if row.is_change else Text("same", "dim")


def _alike(rows: Iterable[HostPlan]) -> dict[str, list[HostPlan]]:
    alike: dict[str, list[HostPlan]] = {}
    for row in rows:
        alike.setdefault(f"{row.path}\0{_text(row)}", []).append(row)
    return {key.partition("\0")[2]: same for key, same in alike.items()}


def _text(row: HostPlan) -> str:
    if row.trouble:
        return row.trouble
    if not row.is_change:
        return "has all" + _foreign(row)
    lacks = [f"{len(row.difference.missing)} files missing"] if row.difference.missing else []
    lacks += [f"{file.name} {why}" for file, why in row.difference.wrong[:SHOWN]]
    more = len(row.difference.wrong) - SHOWN
    lacks += [f"{more} more are wrong"] if more > 0 else []
    there = f", {size(row.parts_bytes)} of it there already" if row.parts_bytes else ""
    return f"{'; '.join(lacks)}: {size(row.bytes)} to come{there}{_foreign(row)}"


def _foreign(row: HostPlan) -> str:
    names = row.difference.foreign
    return f"; {len(names)} files of its own are left alone" if names else ""


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


BOARD = 24
"""Most hosts that a live view shows; those that are done go first where there are more."""


def board_view(latest: Mapping[str, Event]) -> RenderableType:
    """Return how far each host has come, a line each."""
    busy = sorted(latest.items(), key=lambda item: item[1].is_end)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right")
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for host, event in sorted(busy[:BOARD]):
        share = "" if event.share is None else f"{event.share:.0%}"
        text = event.text if event.stage == "copy" else "looking again"
        grid.add_row(host, share, text)
    left = len(busy) - BOARD
    return Group(grid, Text(f"and {left} more", "dim")) if left > 0 else grid


def plan_document(row: HostPlan, *, source: str, seconds: float) -> dict[str, Any]:
    """Return one host's plan."""
    return {
        "schema": "bringup.weights-plan/1",
        "host": row.host,
        "path": row.path,
        "source": source,
        "state": "blocked" if row.trouble else "change" if row.is_change else "same",
        "trouble": row.trouble,
        "way": row.way.value,
        "missing": [file.name for file in row.difference.missing],
        "wrong": {file.name: why for file, why in row.difference.wrong},
        "foreign": row.difference.foreign,
        "bytes": row.bytes,
        "there": row.parts_bytes,
        "free": row.folder.ground.free_bytes,
        "estimated_s": round(seconds, 1),
    }


@dataclass(frozen=True, slots=True)
class Line:
    """How one host came out, as a line."""

    host: str
    path: str
    files: int
    sent: int
    seconds: float
    by: Mapping[str, int]


def copied_view(lines: Iterable[Line]) -> RenderableType:
    """Return what came to each host, from whom, how fast."""
    grid = pairs()
    for line in lines:
        rate = line.sent / max(0.001, line.seconds)
        most = sorted(line.by.items(), key=lambda item: (-item[1], item[0]))
        by = ", ".join(f"{size(count)} from {name}" for name, count in most[:SHOWN])
        by += f" and {len(most) - SHOWN} others" if len(most) > SHOWN else ""
        grid.add_row(
            Text("copied", "green"),
            f"{line.host}:{line.path}  {line.files} files, {size(line.sent)} in "
            f"{duration(line.seconds)} ({size(rate)}/s): {by or 'all was there'}",
        )
    return grid


def copied_document(line: Line) -> dict[str, Any]:
    """Return how one host came out."""
    return {
        "schema": "bringup.weights-copied/1",
        "host": line.host,
        "path": line.path,
        "files": line.files,
        "sent": line.sent,
        "seconds": round(line.seconds, 2),
        "from": dict(line.by),
    }


Check = tuple[str, Folder, tuple[Fault, ...], str]
"""A place as HOST:PATH or PATH, its folder, what is wrong with it, and a note."""


def checks_view(checks: Iterable[Check]) -> Iterator[RenderableType]:
    """Yield whether folders are whole by their own account; hosts whose folders are alike, once."""
    alike: dict[object, list[Check]] = {}
    for check in checks:
        place, folder, faults, note = check
        size_ = (len(folder.weights), folder.weight_bytes)
        key = (place.rpartition(":")[2], size_, tuple(map(str, faults)), note)
        alike.setdefault(key, []).append(check)
    for group in alike.values():
        place, folder, faults, note = group[0]
        _, colon, path = place.partition(":")
        hosts = [one[0].partition(":")[0] for one in group]
        yield _check(f"{fold(hosts)}:{path}" if colon else place, folder, faults, note)


def _check(place: str, folder: Folder, faults: tuple[Fault, ...], note: str) -> RenderableType:
    word = Text("not whole", "bold red") if faults else Text("whole", "bold green")
    told = f"  {place}  {len(folder.weights)} weight files, {size(folder.weight_bytes)}"
    lines = [*map(str, faults), *([f"note: {note}"] if note else [])]
    return Group(word.append(told, "default"), *(Text(f"  {line}") for line in lines))


def check_document(
    host: str, folder: Folder, faults: tuple[Fault, ...], note: str
) -> dict[str, Any]:
    """Return a check of one folder."""
    return {
        "schema": "bringup.weights-check/1",
        "host": host,
        "path": folder.path,
        "good": not faults,
        "faults": [{"name": fault.name, "why": fault.why} for fault in faults],
        "note": note,
        "weights": len(folder.weights),
        "bytes": folder.weight_bytes,
        "revision": folder.revision,
    }
