"""A bundle as bytes: a tar in gzip form that is the same wherever and whenever it is made.

The gzip layer stores and does not compress, since compressed bytes differ between builds of zlib
(zlib and zlib-ng among them); what travels is some megabytes (docs/decisions/0006-blake3.md).
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from .manifest import Manifest, dump_manifest
from .names import MARKER

FILE_MODE = 0o644
FOLDER_MODE = 0o755

# RFC 1952: magic, method deflate, no flags, no time, no extra flags, system unknown.
_GZIP_HEADER = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"
_STORED_MOST = 0xFFFF  # bytes a stored deflate block holds (RFC 1951, 3.2.4)


def pack(manifest: Manifest, contents: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the archive of a manifest and its files' contents, in the manifest's order."""
    return _gzip(_tar(manifest, contents))


def _tar(manifest: Manifest, contents: Iterable[bytes]) -> Iterator[bytes]:
    """The manifest comes first, folders before what is in them, files by name."""
    yield from _member(MARKER, dump_manifest(manifest))
    for folder in _folders(manifest):
        yield _header(folder, 0, is_folder=True)
    for file, content in zip(manifest.files, contents, strict=True):
        yield from _member(file.name, content)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _folders(manifest: Manifest) -> list[str]:
    parents = {str(up) for file in manifest.files for up in PurePosixPath(file.name).parents}
    return sorted(parents - {"."})


def _member(name: str, content: bytes) -> Iterator[bytes]:
    yield _header(name, len(content))
    yield content
    yield bytes(-len(content) % tarfile.BLOCKSIZE)


def _header(name: str, size: int, *, is_folder: bool = False) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mtime = 0
    info.mode = FOLDER_MODE if is_folder else FILE_MODE
    info.type = tarfile.DIRTYPE if is_folder else tarfile.REGTYPE
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a gzip stream that holds the pieces as they are."""
    yield _GZIP_HEADER
    total, sum_ = 0, 0
    for piece in pieces:
        total, sum_ = total + len(piece), zlib.crc32(piece, sum_)
        for start in range(0, len(piece), _STORED_MOST):
            yield _stored(piece[start : start + _STORED_MOST])
    yield _stored(b"", is_last=True)
    yield sum_.to_bytes(4, "little") + (total & 0xFFFFFFFF).to_bytes(4, "little")


def _stored(block: bytes, *, is_last: bool = False) -> bytes:
    length = len(block)
    sizes = length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little")
    return bytes((is_last,)) + sizes + block
