"""What filters behind a command leave of its output, and what is no proof then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...core.reading import Absent, Known
from ..kernel import Modules
from ..kernel_log import KernelLog
from .piece import Piece

_USUAL = 10
"""Lines that head and tail let through where nobody says how many."""


def lines_kept(program: str, rest: Sequence[str]) -> int | None:
    """Return the most lines that `head` or `tail` let through; None for all, 0 for who knows."""
    if program not in ("head", "tail"):
        return None
    words = " ".join(word for word in rest if word.startswith(("-", "+")) or word[:1].isdecimal())
    if program == "tail" and re.search(r"-n ?\+1\b|--lines=\+1\b", words):
        return None
    if re.search(r"-c|--bytes|[n=] ?[+-]\d|\d[kKMG]\b", words):
        return 0
    found = re.search(r"(?:^| )(?:-n ?|-|--lines=)(\d{1,9})\b", words)
    return int(found[1]) if found else _USUAL


def honest(pieces: Iterable[Piece], *, is_partial: bool) -> Iterator[Piece]:
    """Take out of a partial output what only a whole one proves: that something is not there."""
    for piece in pieces:
        if not is_partial:
            yield piece
        elif (kept := _shown(piece)) is not None:
            yield kept


def _shown(piece: Piece) -> Piece | None:
    reading = piece.reading
    if isinstance(reading, Absent):
        return None
    if isinstance(reading, Known) and isinstance(reading.value, Modules):
        seen = replace(reading.value, missing=(), whole=False)
        return Piece(piece.fact, replace(reading, value=seen)) if seen.loaded else None
    if isinstance(reading, Known) and isinstance(reading.value, KernelLog):
        log = reading.value
        if not (log.xids or log.complaints or log.switch_errors):
            return None
        log = replace(log, xids=log.xids or None, complaints=log.complaints or None)
        return Piece(piece.fact, replace(reading, value=log))
    return piece
