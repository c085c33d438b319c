"""A host's files as values, and the one function that brings a folder to them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class File:
    """A file with its content."""

    content: str | bytes
    mode: int = 0o644

    @property
    def data(self) -> bytes:
        return self.content.encode() if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Sparse:
    """A file of `size` bytes of which only `head` takes room on the disk."""

    size: int
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Folder:
    """An empty folder."""

    mode: int = 0o755


Entry: TypeAlias = File | Link | Sparse | Folder
Tree: TypeAlias = Mapping[str, Entry]
"""Entries by absolute path, as the host sees it."""


def tool(text: str) -> File:
    """Return an executable file."""
    return File(text, 0o755)


def settle(root: Path, tree: Tree, *, before: frozenset[str] = frozenset()) -> None:
    """Write what differs below `root`, and remove what only `before` named.

    Files that neither names stay as they are.
    """
    for path in sorted(before - tree.keys(), reverse=True):
        _remove_up(root / path.lstrip("/"), root)
    made: set[Path] = set()
    for path, entry in tree.items():
        target = root / path.lstrip("/")
        found = _found(target)
        if found and _stands(target, found, entry):
            continue
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        if found and not (isinstance(entry, Folder) and stat.S_ISDIR(found.st_mode)):
            _remove(target)
        _write(target, entry)


def _found(target: Path) -> os.stat_result | None:
    try:
        return target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stands(target: Path, found: os.stat_result, entry: Entry) -> bool:
    """Whether what was found is the entry, content and mode included."""
    match entry:
        case Link(target=wanted):
            return stat.S_ISLNK(found.st_mode) and str(target.readlink()) == wanted
        case Folder(mode=mode):
            return stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == mode
        case Sparse(size=size, head=head):
            return stat.S_ISREG(found.st_mode) and found.st_size == size and _head(target, head)
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != entry.mode:
        return False
    return found.st_size == len(entry.data) and target.read_bytes() == entry.data


def _head(target: Path, head: bytes) -> bool:
    with target.open("rb") as stream:
        return stream.read(len(head)) == head


def _write(target: Path, entry: Entry) -> None:
    """Make an entry where nothing stands, or set the mode of a folder that does."""
    match entry:
        case Link(target=wanted):
            target.symlink_to(wanted)
        case Folder(mode=mode):
            target.mkdir(exist_ok=True)
            target.chmod(mode)
        case Sparse(size=size, head=head):
            target.write_bytes(head)
            os.truncate(target, size)
        case File(mode=mode):
            with target.open("wb", buffering=0) as stream:
                stream.write(entry.data)
                os.fchmod(stream.fileno(), mode)


def _remove_up(target: Path, root: Path) -> None:
    """Remove an entry, and the folders above it that hold nothing else."""
    while target != root:
        _remove(target)
        if target.exists():
            return
        target = target.parent


def _remove(target: Path) -> None:
    """Remove a file, a link or an empty folder; a folder that holds other things stays."""
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir() and not any(target.iterdir()):
        target.rmdir()


def digest(root: Path) -> str:
    """Return ``sha256:…`` of a folder: names, kinds, modes and contents, holes of files skipped.

    The practice weights are terabytes of holes, so a plain checksum of every file never ends.
    """
    total = hashlib.sha256()
    for path in _walk(root):
        found = path.lstat()
        total.update(f"\n{path.relative_to(root)} {found.st_mode:o} ".encode("utf-8", "replace"))
        if stat.S_ISLNK(found.st_mode):
            total.update(os.fsencode(path.readlink()))
        elif stat.S_ISREG(found.st_mode):
            total.update(f"{found.st_size} ".encode())
            for piece in _data(path, found.st_size):
                total.update(piece)
    return f"sha256:{total.hexdigest()}"


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders.sort()
        yield from (Path(folder) / name for name in sorted(folders + files))


def _data(path: Path, size: int) -> Iterator[bytes]:
    """Yield the parts of a file that are not holes, each with its offset before it."""
    with path.open("rb") as stream:
        place = 0
        while place < size:
            try:
                place = os.lseek(stream.fileno(), place, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(stream.fileno(), place, os.SEEK_HOLE)
            yield f"@{place} ".encode()
            stream.seek(place)
            while place < end and (piece := stream.read(min(end - place, 1 << 20))):
                yield piece
                place += len(piece)
            place = end
