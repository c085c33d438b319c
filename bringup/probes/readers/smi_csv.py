"""`nvidia-smi --query-gpu=… --format=csv`, with or without its header line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .smi_words import CSV, SLOWDOWN_BITS, SLOWDOWNS, Listing, Words

_UNIT = re.compile(r"\s*\[[^\]]*\]$")


def read(text: str, fields: Sequence[str] = (), *, index: int | None = None) -> Listing:
    """Return what csv rows tell. `fields` names the columns where the header is left out."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = header(lines[0]) if lines else ()
    if names:
        lines = lines[1:]
    names = names or tuple(field.strip().lower() for field in fields)
    rows = [_words(names, row) for line in lines if (row := _cells(line, len(names)))]
    whole = bool(rows) and len(rows) == len(lines) and index is None
    if len(rows) == 1 and index is not None:
        rows[0].setdefault("index", str(index))
    return Listing(
        driver=next((row["driver"] for row in rows if row.get("driver", "")[:1].isdigit()), ""),
        attached=_attached(rows),
        gpus=tuple(_without(row, "driver", "attached") for row in rows),
        whole=whole,
        ordered=whole,
        evidence=lines[0].strip() if rows else "",
    )


def header(line: str) -> tuple[str, ...]:
    """Return the field names in a header line, or () where the line is no header."""
    names = tuple(_UNIT.sub("", cell.strip()).lower() for cell in line.split(","))
    known = [name for name in names if name in CSV or "." in name]
    return names if known and all(re.fullmatch(r"[a-z][a-z0-9_.]*", n) for n in names) else ()


def _cells(line: str, count: int) -> tuple[str, ...]:
    """Return the cells of a row, or () where it has another number of them than expected."""
    cells = tuple(cell.strip() for cell in line.split(","))
    return cells if count and len(cells) == count else ()


def _words(names: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    words: dict[str, str] = {}
    for name, cell in zip(names, cells, strict=True):
        folder, _, reason = name.partition(".")
        if attribute := CSV.get(name):
            words.setdefault(attribute, cell)
        elif name.startswith("fabric.health."):
            words[f"fabric_health.{name.rpartition('.')[2]}"] = cell
        elif folder in ("clocks_event_reasons", "clocks_throttle_reasons"):
            words |= _slowdowns(reason, cell)
        else:
            words[f"other.{name}"] = cell
    return words


def _slowdowns(reason: str, cell: str) -> Words:
    """One reason ("Active"), or all of them as a bit mask ("0x0000000000000004")."""
    if reason in SLOWDOWNS:
        return {f"slowdown.{reason}": cell}
    if reason != "active" or not re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", cell):
        return {}
    mask = int(cell, 16)
    return {
        f"slowdown.{name}": "Active" if mask & bit else "Not Active"
        for bit, name in SLOWDOWN_BITS.items()
    }


def _attached(rows: Sequence[Words]) -> int | None:
    counts = {row["attached"] for row in rows if row.get("attached", "").isdecimal()}
    return int(counts.pop()) if len(counts) == 1 else None


def _without(words: Words, *names: str) -> Words:
    return {name: word for name, word in words.items() if name not in names}
