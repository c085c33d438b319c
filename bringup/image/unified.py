"""Unified diffs, applied to the letter: no fuzz, no offset. Also runs inside the image.

Standard library alone and no relative import, since the build copies this file as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_NO_NEWLINE = "\\ No newline at end of file"


class PatchError(Exception):
    """A diff that does not read, or does not fit its file to the letter."""


@dataclass(frozen=True)
class Hunk:
    """One piece: the 0-based line where the old text stands, the old lines and the new ones."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int  # 1-based line of the diff


@dataclass(frozen=True)
class FileDiff:
    """All pieces for one file. `old` is "" for a new file, `new` is "" for one taken away."""

    old: str
    new: str
    hunks: tuple[Hunk, ...]

    @property
    def path(self) -> str:
        return self.new or self.old


def parse(text: str) -> tuple[FileDiff, ...]:
    """Return the files that a unified diff changes; paths lose a leading ``a/`` or ``b/``.

    Raises PatchError for a diff that is cut off, whose counts lie, or that changes nothing.
    """
    lines = text.split("\n")
    at, found = 0, list[FileDiff]()
    while at < len(lines):
        if not lines[at].startswith("--- "):
            _refuse_binary(lines[at], at)
            at += 1
            continue
        if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
            raise PatchError(f"line {at + 1}: '---' without '+++' after it")
        old, new = _path(lines[at][4:]), _path(lines[at + 1][4:])
        hunks, at = _hunks(lines, at + 2)
        if not hunks:
            raise PatchError(f"line {at}: no hunk for {new or old}")
        found.append(FileDiff(old, new, hunks))
    if not found:
        raise PatchError("it holds no unified diff")
    return tuple(found)


def _refuse_binary(line: str, at: int) -> None:
    if line.startswith(("GIT binary patch", "Binary files", "rename from", "copy from")):
        raise PatchError(f"line {at + 1}: '{line}' is more than a unified diff of text")


def _path(text: str) -> str:
    name = text.partition("\t")[0].strip()
    if name == "/dev/null":
        return ""
    return name[2:] if name[:2] in ("a/", "b/") else name


def _hunks(lines: list[str], at: int) -> tuple[tuple[Hunk, ...], int]:
    hunks = list[Hunk]()
    while at < len(lines) and lines[at].startswith("@@"):
        hunk, at = _hunk(lines, at)
        hunks.append(hunk)
    return tuple(hunks), at


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    head = _HUNK.fullmatch(lines[at])
    if head is None:
        raise PatchError(f"line {at + 1}: not a hunk: {lines[at]!r}")
    start, old_count = int(head[1]), int(head[2] or 1)
    new_count, here = int(head[4] or 1), at + 1
    old, new = list[str](), list[str]()
    at += 1
    while len(old) < old_count or len(new) < new_count:
        if at >= len(lines):
            raise PatchError(f"line {here}: the hunk is cut off")
        _take(lines, at, old, new)
        at += 1
    if at < len(lines) and lines[at] == _NO_NEWLINE:
        _take(lines, at, old, new)
        at += 1
    if (len(old), len(new)) != (old_count, new_count):
        raise PatchError(f"line {here}: the hunk's counts do not match its lines")
    return Hunk(start - 1 if old_count else start, tuple(old), tuple(new), here), at


def _take(lines: list[str], at: int, old: list[str], new: list[str]) -> None:
    """Add one line of a hunk to the sides it belongs to; every line keeps its line end."""
    mark, body = lines[at][:1], lines[at][1:] + "\n"
    if lines[at] == _NO_NEWLINE:
        for side in _sides(lines[at - 1][:1], old, new):
            side[-1] = side[-1].rstrip("\n")
        return
    for side in _sides(mark or " ", old, new):
        side.append(body)


def _sides(mark: str, old: list[str], new: list[str]) -> Iterator[list[str]]:
    if mark not in ("-", "+", " "):
        raise PatchError(f"a line of a hunk starts with {mark!r}")
    if mark != "+":
        yield old
    if mark != "-":
        yield new


def apply(diff: FileDiff, content: bytes) -> bytes:
    """Return the content with every hunk applied exactly where it says; raises PatchError."""
    lines = _lines(content)
    out, done = list[str](), 0
    for hunk in diff.hunks:
        there = tuple(lines[hunk.start : hunk.start + len(hunk.old)])
        if hunk.start < done or there != hunk.old:
            raise PatchError(_misfit(diff, hunk, there))
        out += lines[done : hunk.start]
        out += hunk.new
        done = hunk.start + len(hunk.old)
    return "".join(out + lines[done:]).encode()


def _lines(content: bytes) -> list[str]:
    """Cut at line feeds alone: a carriage return belongs to its line."""
    whole = content.decode().split("\n")
    return [line + "\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])


def _misfit(diff: FileDiff, hunk: Hunk, there: tuple[str, ...]) -> str:
    for number, wanted in enumerate(hunk.old):
        found = there[number] if number < len(there) else "(end of file)"
        if found != wanted:
            return (
                f"line {hunk.line}: {diff.path}:{hunk.start + number + 1} reads "
                f"{found.rstrip()!r}, the diff expects {wanted.rstrip()!r}"
            )
    return f"line {hunk.line}: the hunks of {diff.path} overlap"
