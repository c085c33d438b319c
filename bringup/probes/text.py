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
        return Unknown(section.first or f"exit {section.exit}", section.first)
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


def told(text: str) -> dict[str, tuple[str, ...]]:
    """Return all values of each key in ``key<TAB>value`` lines, in their order."""
    found: dict[str, tuple[str, ...]] = {}
    for key, *values in rows(text):
        found[key] = (*found.get(key, ()), "\t".join(values))
    return found


def first(found: dict[str, tuple[str, ...]], key: str) -> str:
    """Return the first value of a key, or ""."""
    return next(iter(found.get(key, ())), "")


UNLIMITED = -1
"""How a limit that is none stands in a fact."""


def limit(word: str) -> int | None:
    """Return a limit as a number, `UNLIMITED` for that word, or None for anything else."""
    return UNLIMITED if word.strip() == "unlimited" else whole(word)


def size_of(ranges: str) -> int | None:
    """Return how many numbers a kernel list such as ``0-55,112-167`` holds, None for no list."""
    if not re.fullmatch(r"[0-9]{1,7}(-[0-9]{1,7})?(,[0-9]{1,7}(-[0-9]{1,7})?)*", ranges.strip()):
        return None
    pairs = (part.partition("-") for part in ranges.strip().split(","))
    return sum(int(last or start) - int(start) + 1 for start, _, last in pairs)


def version(text: str) -> tuple[int, ...]:
    """Return the numbers of the first version in a text, e.g. (580, 95, 5); () for none.

    Compares as versions do: ``version("1.17.8") < version("1.18.0-rc.1")``.
    """
    match = re.search(r"[0-9]{1,9}(\.[0-9]{1,9})+", text)
    return tuple(int(number) for number in match.group().split(".")) if match else ()


def space(row: str) -> tuple[int, int] | None:
    """Return total and available KiB from a row of ``df -kP``, None for anything else."""
    found = re.search(r"\s([0-9]{1,15})\s+[0-9]+\s+([0-9]{1,15})\s+([0-9]+%|-)\s+/", row)
    return (int(found[1]), int(found[2])) if found else None


GET = r"""
get() { v=; { read -r v <"$1"; } 2>/dev/null; }
say() { printf '%s\t%s\n' "$1" "$2"; }
tell() { get "$R$2"; [ -z "$v" ] || say "$1" "$v"; }
"""
"""Shell text that section texts start with: `get FILE` reads one line into v without a process,
`say KEY VALUE` prints a row, `tell KEY PATH` prints the first line of a file of the host."""
