"""Model folders and bundles on this machine's disk: scan, read, write, open.

Names are walked as bytes, so that the operator's locale cannot change what goes into a bundle.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from ..bundle.archive import pack
from ..bundle.manifest import BundleFile, Manifest, parse_manifest
from ..bundle.names import MARKER, from_raw, raw, shown, trouble
from ..bundle.scan import METADATA, Listing, is_skipped
from ..bundle.selection import HEAD_BYTES, TOTAL_LIMIT, Candidate, Kind
from ..core.errors import UsageError


def summed(name: str, content: bytes) -> BundleFile:
    """Return a file's entry in a manifest."""
    sum_ = hashlib.sha256(content).hexdigest()
    return BundleFile(name, len(content), sum_, blake3(content).hexdigest())


def scan_folder(folder: Path) -> Listing:
    """Return everything in a folder, as far as the choice of files needs it.

    Follows no link to a folder. Raises UsageError when it is no folder or cannot be read.
    """
    try:
        root = folder.resolve(strict=True)
        names = sorted(_walk(root), key=os.fsencode)
        candidates = tuple(_candidate(root, _boundary(root), name) for name in names)
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from error
    return Listing(_named(str(root)), candidates, _first_line(root / METADATA))


def read_files(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the contents of files in a folder. Raises UsageError for one that cannot be read."""
    return {name: _read(folder, name) for name in names}


def write_archive(path: Path, manifest: Manifest, contents: Mapping[str, bytes]) -> str:
    """Write a bundle, staged beside its place and renamed; return its SHA-256.

    Raises UsageError when it cannot be written. The same bytes are not written twice.
    """
    data = b"".join(pack(manifest, (contents[file.name] for file in manifest.files)))
    sum_ = hashlib.sha256(data).hexdigest()
    try:
        if not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sum_):
            path.parent.mkdir(parents=True, exist_ok=True)
            staged = path.with_name(f".{path.name}.{os.getpid()}")
            staged.write_bytes(data)
            staged.chmod(0o644)
            staged.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    return sum_


@dataclass(frozen=True, slots=True)
class Opened:
    """A bundle that was read and found whole: every file has the sums of its manifest."""

    path: Path
    sha256: str
    manifest: Manifest
    files: Mapping[str, bytes]


def open_archive(path: Path) -> Opened:
    """Return a bundle's manifest and files, checked. Raises UsageError for anything odd in it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    members = dict(_members(path, data))
    marker = members.pop(MARKER, None)
    if marker is None:
        raise UsageError(
            f"cannot use {path} as a bundle: it has no manifest",
            remedy="make it from the worker's model folder: bringup bundle.make",
        )
    manifest = parse_manifest(marker, where=str(path))
    _check(path, manifest, members)
    return Opened(path, hashlib.sha256(data).hexdigest(), manifest, members)


def _check(path: Path, manifest: Manifest, members: Mapping[str, bytes]) -> None:
    wanted = {file.name: file for file in manifest.files}
    for name in sorted(wanted.keys() ^ members.keys()):
        where = "the archive" if name in wanted else "the manifest"
        raise UsageError(f"cannot trust {path}: {where} lacks {shown(name)}")
    for name, content in sorted(members.items()):
        if summed(name, content) != wanted[name]:
            raise UsageError(f"cannot trust {path}: {shown(name)} is not what the manifest says")


def _members(path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield files of an archive; refuses links, devices, paths that lead out, names given twice."""
    seen: set[str] = set()
    try:
        plain = io.BytesIO(_unzipped(path, data))
        with tarfile.open(
            fileobj=plain, mode="r:", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            for member in archive:
                why = _refusal(member, seen)
                if why:
                    raise UsageError(f"cannot trust {path}: {shown(member.name)}: {why}")
                seen.add(member.name)
                stream = archive.extractfile(member)
                if stream is not None:
                    yield member.name, stream.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path} as an archive: {error}") from error


def _unzipped(path: Path, data: bytes) -> bytes:
    """Return the tar inside, to its very end, so that its checksum has a say."""
    most = 2 * TOTAL_LIMIT
    with gzip.open(io.BytesIO(data)) as stream:
        plain = stream.read(most + 1)
    if len(plain) > most:
        raise UsageError(f"cannot trust {path}: it unpacks to more than {most} bytes")
    return plain


def _refusal(member: tarfile.TarInfo, seen: set[str]) -> str:
    if member.name in seen:
        return "given twice"
    if not (member.isreg() or member.isdir()):
        return "neither a file nor a folder"
    return "" if member.name == MARKER else trouble(member.name)


def _named(path: str) -> str:
    """Return a path of this process as names of a bundle are, whatever the locale."""
    return from_raw(os.fsencode(path))


def _boundary(root: Path) -> Path:
    """Return the folder that links may lead into: the folder itself.

    For a snapshot in a Hugging Face cache that is the model's folder there, since the snapshot
    is made of links into its blobs.
    """
    model = root.parent.parent
    is_cache = root.parent.name == "snapshots" and (model / "blobs").is_dir()
    return model if is_cache else root


def _walk(root: Path, below: str = "") -> Iterator[str]:
    """Yield the relative path of all that is no folder."""
    with os.scandir(root / below) as entries:
        for entry in entries:
            name = below + entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif not is_skipped(entry.name):
                yield from _walk(root, name + "/")


def _candidate(root: Path, boundary: Path, relative: str) -> Candidate:
    path, name = root / relative, _named(relative)
    kind = _kind(path, boundary)
    if kind is not Kind.FILE:
        return Candidate(name, kind=kind)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            return Candidate(name, os.fstat(file.fileno()).st_size, head)
    except PermissionError:
        return Candidate(name, kind=Kind.UNREADABLE)


def _kind(path: Path, boundary: Path) -> Kind:
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return Kind.BROKEN
    if path.is_symlink() and not real.is_relative_to(boundary):
        return Kind.OUTSIDE
    if stat.S_ISDIR(mode):
        return Kind.FOLDER_LINK
    return Kind.FILE if stat.S_ISREG(mode) else Kind.SPECIAL


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / os.fsdecode(raw(name))).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {folder}/{shown(name)}: {error.strerror}") from error


def _first_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""
