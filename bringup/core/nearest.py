"""The known words nearest to one that nobody knows, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher


def nearest(word: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return up to `most` known words that look like this one, nearest first."""
    likeness = {
        name: SequenceMatcher(None, name.casefold(), word.casefold()).ratio() for name in known
    }
    close = sorted((-score, name) for name, score in likeness.items() if score >= 0.6)
    return tuple(name for _, name in close[:most])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean a or b?", or what there is when nothing is near, or ""."""
    names = sorted(known)
    if close := nearest(word, names):
        return f"; did you mean {' or '.join(close)}?"
    if not names:
        return ""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"; there is {', '.join(names[:8])}{more}"
