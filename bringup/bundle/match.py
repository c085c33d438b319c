"""Whether files are those that workers announce, byte for byte: before anything is restarted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ..readiness.cards import CardFile, ModelCard, Where
from .manifest import BundleFile, Manifest


@dataclass(frozen=True, slots=True)
class Sums:
    """What one file is: size in bytes, BLAKE3 in hexadecimal ("" where nobody summed it)."""

    size: int
    blake3: str


Held: TypeAlias = Mapping[str, Sums]
"""The files of one folder, by name."""


class Fault(Enum):
    """How a file falls short of its card. A frontend says each in words of its own."""

    MISSING = "missing"
    LONGER = "longer"
    OTHER = "other bytes"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One file that is not what a card says. `found` is None where there is no such file."""

    card: str  # discovery key
    file: CardFile
    fault: Fault
    found: Sums | None

    def __str__(self) -> str:
        wanted = f"{self.file.size} bytes" if self.file.size is not None else "some bytes"
        match self.fault:
            case Fault.MISSING:
                return f"{self.file.name}: missing ({wanted} announced)"
            case Fault.LONGER:
                size = self.found.size if self.found else 0
                return f"{self.file.name}: {size} bytes, {wanted} announced"
        found = f"{self.found.size} bytes, blake3 {self.found.blake3[:12]}" if self.found else "?"
        return f"{self.file.name}: {found}; announced {wanted}, {self.file.checksum[:19]}"


def held(manifest: Manifest) -> Held:
    """Return a bundle's files as a folder made from it would hold them."""
    return {file.name: Sums(file.size, file.blake3) for file in manifest.files}


def mismatch(card: ModelCard, file: CardFile, found: Sums | None) -> Mismatch | None:
    """Return how a file differs from what its card says, or None where it does not.

    A frontend compares the size first, and only a longer file fails by it; then the sum.
    """
    if found is None:
        return Mismatch(card.key, file, Fault.MISSING, None)
    if file.size is not None and found.size > file.size:
        return Mismatch(card.key, file, Fault.LONGER, found)
    if found.blake3 and f"blake3:{found.blake3}" != file.checksum:
        return Mismatch(card.key, file, Fault.OTHER, found)
    return None


def against_cards(files: Held, cards: Iterable[ModelCard]) -> tuple[Mismatch, ...]:
    """Return every file of the cards that a folder would not give to a frontend as it should be.

    Files that workers serve themselves, or that a hub has, are no matter of the folder.
    """
    wanted = ((card, file) for card in cards for file in card.files if file.where is Where.FOLDER)
    found = (mismatch(card, file, files.get(file.name)) for card, file in wanted)
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class Difference:
    """How a folder stands to a manifest: names of files that lack, differ, or are not in it."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether every file of the bundle is there unaltered; more files do no harm."""
        return not self.missing and not self.changed


def difference(manifest: Manifest, sums: Mapping[str, str]) -> Difference:
    """Return how a folder differs from a manifest, given its files' SHA-256 by name."""
    wanted: dict[str, BundleFile] = {file.name: file for file in manifest.files}
    return Difference(
        tuple(sorted(wanted.keys() - sums.keys())),
        tuple(sorted(n for n in wanted.keys() & sums.keys() if wanted[n].sha256 != sums[n])),
        tuple(sorted(sums.keys() - wanted.keys())),
    )
