"""A patch and a base that moved: what the patch did, what the base did, and where they meet."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import Enum


class Meeting(Enum):
    """How a patched file stands to a new base."""

    SAME = "same"  # the base did not touch it
    MERGED = "merged"  # both changed it, in different places
    CONFLICT = "conflict"  # both changed the same lines: a person decides
    TAKEN = "taken"  # the new base holds what the patch does
    GONE = "gone"  # the new base has no such file
    UNKNOWN = "unknown"  # the old base is not at hand


@dataclass(frozen=True, slots=True)
class Rebased:
    """One patched file between two bases. Sums are bare sha256, "" where there is no file."""

    patch: str
    file: str
    meeting: Meeting
    old_sum: str
    new_sum: str
    ours: str = ""  # what the patch does to the old file, as a unified diff
    theirs: str = ""  # what the new base does to it
    merged: bytes = b""


def unified(before: bytes, after: bytes, name: str, *, old: str, new: str) -> str:
    """Return a unified diff of two texts, "" when they are equal."""
    lines = difflib.unified_diff(
        before.decode(errors="replace").splitlines(keepends=True),
        after.decode(errors="replace").splitlines(keepends=True),
        f"{old}/{name}",
        f"{new}/{name}",
    )
    end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + end for line in lines)
