"""Words of a remote command, and the only place that turns them into shell text.

No command, path or value reaches a shell except through `quote`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A value that goes out whole on the wire and prints as ``***`` everywhere else."""

    reveal: str

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"


@dataclass(frozen=True, slots=True)
class HostPath:
    """An absolute path as the host sees it; it gains the inventory's ``root:`` when quoted."""

    path: str

    def __str__(self) -> str:
        return self.path


Word: TypeAlias = str | HostPath | Secret
"""One argument. A plain str is quoted, a HostPath is prefixed by ``"$R"``, a Secret is masked."""


def quote(word: Word) -> str:
    """Return shell text for one word. ``"$R"`` is the root folder that every script sets."""
    if isinstance(word, HostPath):
        return f'"$R"{shlex.quote(word.path)}'
    return shlex.quote(word.reveal if isinstance(word, Secret) else word)


def command(words: Iterable[Word]) -> str:
    """Return shell text for a whole command."""
    return " ".join(quote(word) for word in words)


def shown(words: Iterable[Word]) -> str:
    """Return the command as people may see it: secrets masked, root left out."""
    return " ".join("***" if isinstance(word, Secret) else shlex.quote(str(word)) for word in words)
