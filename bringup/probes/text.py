"""Small pure readers of text that all parsers share. None of them raises or guesses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section

ABSENT = 3
"""Exit code by which our own section texts say "surely not there", with a line "absent: …"."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def answered(section: Section) -> Reading[str]:
    """Return the text of a section that ran to its end.

    Exit `ABSENT` with a line "absent: …" first is `Absent`; any other exit code is `Unknown`.
    """
    if section.trouble:
        return Unknown(section.trouble, section.first)
    if section.exit == ABSENT and section.first.startswith("absent: "):
        return Absent(section.first.removeprefix("absent: "))
    if section.exit != 0:
        return Unknown(f"exit {section.exit}", section.first)
    return Known(section.text, section.first)


def rows(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the tab-separated fields of every line that has at least two."""
    for line in text.splitlines():
        fields = tuple(field.strip() for field in line.replace("\0", "").split("\t"))
        if len(fields) > 1 and fields[0]:
            yield fields


def whole(text: str) -> int | None:
    """Return a whole number, or None for anything else: ``[N/A]`` is not 0."""
    word = text.strip()
    return int(word) if re.fullmatch(r"-?[0-9]{1,18}", word) else None


def decimal(text: str) -> float | None:
    """Return a decimal number, or None for anything else."""
    word = text.strip()
    return float(word) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", word) else None


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts ``mlx5_2`` before ``mlx5_10``."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple((0, int(p), "") if p.isdecimal() and p.isascii() else (1, 0, p) for p in parts)


def unescaped(text: str) -> str:
    """Return text without terminal escapes, which ``nvidia-smi topo -m`` prints into a pipe."""
    return _ESCAPES.sub("", text)
