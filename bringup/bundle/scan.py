"""How a host is asked for a model folder: sh text that lists and reads it, and the way back.

Two trips: one lists everything with sizes, first bytes and sums, one brings the chosen files. All
names and bytes travel in base64, since a host's output is text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import HostPath, quote
from .names import escaped, from_raw, shown
from .selection import (
    FILE_LIMIT,
    HEAD_BYTES,
    SKIPPED_FOLDERS,
    WEIGHT_SUFFIXES,
    Candidate,
    Kind,
)

METADATA = ".cache/huggingface/download/config.json.metadata"
"""Where `huggingface_hub` notes the commit of a file that it fetched into a plain folder."""

LISTING = "bundle-list"
CHUNK_BYTES = 690_000
"""Bytes of a file in one section: in base64 they stay below the cap of an answer's section."""

LOT = 100
"""Pieces of files in one section."""

ASKS_A_TRIP = 4
"""Sections in one script: all that a trip brings has to stay below 4 MiB."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder as it was found: its real path and what is in it, weights and all.

    `metadata` is the first line of `METADATA`, "" where there is none.
    """

    folder: str
    candidates: tuple[Candidate, ...]
    metadata: str = ""

    @property
    def revision(self) -> str:
        """The commit of the model, where the folder tells: a hub's snapshot, or its metadata."""
        snapshot = re.search(r"/snapshots/([0-9a-f]{40})/?$", self.folder)
        if snapshot:
            return snapshot[1]
        return self.metadata if re.fullmatch("[0-9a-f]{40}", self.metadata) else ""


def is_skipped(folder: str) -> bool:
    """Return whether nothing in a folder of this name is looked at."""
    return (folder.startswith(".") and folder != ".") or folder in SKIPPED_FOLDERS


_KINDS = {
    "file": Kind.FILE,
    "outside": Kind.OUTSIDE,
    "broken": Kind.BROKEN,
    "folder": Kind.FOLDER_LINK,
    "special": Kind.SPECIAL,
    "unreadable": Kind.UNREADABLE,
}

# Weights by name are listed with their size alone: to read terabytes would take hours.
_LIST = r"""
d={path}
[ -e "$d" ] || {{ echo absent; exit 0; }}
[ -d "$d" ] || {{ echo "not a folder"; exit 0; }}
cd -- "$d" || exit 2
outer=$(pwd -P)
case $outer in
*/snapshots/*) up=${{outer%/*}}; up=${{up%/*}} ;;
*) up=/nowhere ;;
esac
b() {{ base64 | tr -d '\n'; }}
printf 'folder %s %s\n' "$(printf %s "$outer" | b)" "$(head -n 1 {metadata} 2>/dev/null | b)"
[ ! -d "$up/blobs" ] || outer=$up
export outer
find . -type d -name '.?*' -prune -o {skipped} ! -type d -exec sh -c '
b() {{ base64 | tr -d "\n"; }}
for f do
  kind=file size=0 sum=- head=-
  if [ -L "$f" ]; then
    if [ ! -e "$f" ]; then kind=broken
    else
      real=$(readlink -f -- "$f")
      case $real in "$outer"/*) ;; *) kind=outside ;; esac
      [ $kind = outside ] || [ ! -d "$f" ] || kind=folder
    fi
  fi
  if [ $kind = file ]; then
    if [ ! -f "$f" ]; then kind=special
    elif [ ! -r "$f" ]; then kind=unreadable
    else
      size=$(stat -L -c %s -- "$f")
      case $f in {weights}) ;;
      *) head=$(head -c {head} -- "$f" | b)
        [ "$size" -gt {limit} ] || {{ sum=$(sha256sum <"$f"); sum=${{sum%% *}}; }} ;;
      esac
    fi
  fi
  printf "%s %s %s %s %s\n" "$kind" "$size" "$sum" "${{head:--}}" "$(printf %s "${{f#./}}" | b)"
done' sh {{}} +
echo end
"""


def listing_ask(path: str, *, seconds: int = 120) -> Ask:
    """Return the question that lists a folder on a host, sums included, weights left unread."""
    skipped = " ".join(f"-type d -name {quote(name)} -prune -o" for name in SKIPPED_FOLDERS)
    script = _LIST.format(
        path=quote(HostPath(path)),
        metadata=quote(METADATA),
        skipped=skipped,
        weights="|".join(f"*{suffix}" for suffix in WEIGHT_SUFFIXES),
        head=HEAD_BYTES,
        limit=FILE_LIMIT,
    )
    return Ask(LISTING, script, seconds)


def parse_listing(section: Section) -> Reading[Listing]:
    """Return what a host said of a folder; a listing that was cut off is unknown."""
    lines = section.text.split("\n")
    if section.trouble or section.exit != 0:
        return Unknown(section.trouble or f"exit {section.exit}", section.first)
    if lines[0] in ("absent", "not a folder"):
        return Absent(lines[0])
    try:
        head, *rows, end = [line for line in lines if line]
        word, folder, metadata = (head + " ").split(" ")[:3]
        found = Listing(
            from_raw(_bytes(folder)), tuple(map(_candidate, rows)), _bytes(metadata).decode()
        )
    except (ValueError, KeyError) as error:
        return Unknown(f"cannot make sense of the listing: {error}", section.first)
    whole = word == "folder" and end == "end"
    return Known(found) if whole else Unknown("the listing was cut off", section.first)


def _candidate(row: str) -> Candidate:
    kind, size, sum_, head, name = row.split(" ")
    return Candidate(
        from_raw(_bytes(name)),
        int(size),
        b"" if head == "-" else _bytes(head),
        _KINDS[kind],
        "" if sum_ == "-" else sum_,
    )


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from error


# `%b.` and the cut keep a name that ends in newlines, which "$(…)" alone would lose.
_FETCH = r"""
cd -- {path} || exit 2
piece() {{
  x=$(printf '%b.' "$2")
  printf '# %s\n' "$1"
  dd if="./${{x%.}}" bs={bytes} skip="$3" count=1 status=none | base64
}}
{pieces}
"""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of one file: the file's number in the choice, the part's own, its bytes at most."""

    file: int
    number: int
    size: int


def fetch_asks(path: str, chosen: Iterable[Candidate]) -> tuple[Ask, ...]:
    """Return the questions that bring files of a folder, as many pieces a section as fit."""
    files = tuple(chosen)
    return tuple(
        Ask(f"bundle-files-{number}", _fetch(path, files, lot), 60)
        for number, lot in enumerate(_lots(files))
    )


def _fetch(path: str, files: tuple[Candidate, ...], lot: tuple[_Piece, ...]) -> str:
    calls = (
        f"piece {piece.file} {quote(escaped(files[piece.file].name))} {piece.number}"
        for piece in lot
    )
    return _FETCH.format(path=quote(HostPath(path)), bytes=CHUNK_BYTES, pieces="\n".join(calls))


def _lots(files: tuple[Candidate, ...]) -> Iterator[tuple[_Piece, ...]]:
    lot: list[_Piece] = []
    for piece in _pieces(files):
        if lot and (sum(p.size for p in lot) + piece.size > CHUNK_BYTES or len(lot) == LOT):
            yield tuple(lot)
            lot = []
        lot.append(piece)
    if lot:
        yield tuple(lot)


def _pieces(files: tuple[Candidate, ...]) -> Iterator[_Piece]:
    for number, file in enumerate(files):
        for start in range(0, max(file.size, 1), CHUNK_BYTES):
            size = min(CHUNK_BYTES, file.size - start)
            yield _Piece(number, start // CHUNK_BYTES, size)


def trips(asks: tuple[Ask, ...]) -> Iterator[tuple[Ask, ...]]:
    """Yield the questions in lots whose answers fit into one trip; most often that is one."""
    for start in range(0, len(asks), ASKS_A_TRIP):
        yield asks[start : start + ASKS_A_TRIP]


def parse_files(
    chosen: Iterable[Candidate], sections: Iterable[Section]
) -> Reading[dict[str, bytes]]:
    """Return the contents of fetched files by name; one that came in part makes all unknown."""
    files = tuple(chosen)
    found = [bytearray() for _ in files]
    for section in sections:
        if section.trouble or section.exit != 0:
            return Unknown(section.trouble or section.first, section.first)
        try:
            for number, data in _brought(section.text):
                found[number] += data
        except (ValueError, IndexError) as error:
            return Unknown(f"cannot make sense of the answer: {error}", section.first)
    for file, whole in zip(files, found, strict=True):
        if len(whole) != file.size:
            return Unknown(f"{shown(file.name)} changed while it was read")
    return Known({file.name: bytes(whole) for file, whole in zip(files, found, strict=True)})


def _brought(text: str) -> Iterator[tuple[int, bytes]]:
    """Yield file numbers and bytes of an answer, in its order."""
    for part in text.split("# ")[1:]:
        number, _, data = part.partition("\n")
        yield int(number), _bytes(data.replace("\n", ""))
