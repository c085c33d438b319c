"""An image as a stream of bytes that is the same every time, cut into parts that resume.

The stream is what ``docker load`` reads: a tar with the description, the manifest and the layers
that a host lacks. Layers it has are named and left out: the engine does not open their files.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .registry import Stored

PART = 8 * 1024 * 1024
"""Bytes of one part: what is sent again, at most, when a line drops."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a stream, named by its place and its sum."""

    name: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Stream:
    """Pieces that follow each other: bytes, or a file on this disk with its size."""

    pieces: tuple[bytes | tuple[Path, int], ...]
    key: str  # names the stream: two that differ have different keys

    @property
    def size(self) -> int:
        return sum(len(p) if isinstance(p, bytes) else p[1] for p in self.pieces)

    def parts(self, size: int = 0) -> Iterator[Part]:
        """Yield the parts in order; each is `size` bytes long (by default `PART`) but the last."""
        size = size or PART
        buffer, count = bytearray(), 0
        for piece in self.pieces:
            for body in (piece,) if isinstance(piece, bytes) else _read(piece[0], size):
                buffer += body
                while len(buffer) >= size:
                    yield _part(count, bytes(buffer[:size]))
                    del buffer[:size]
                    count += 1
        if buffer:
            yield _part(count, bytes(buffer))


def _read(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while body := file.read(size):
            yield body


def _part(count: int, body: bytes) -> Part:
    return Part(f"{count:06d}-{hashlib.sha256(body).hexdigest()[:16]}.part", body)


def layers_stream(stored: Stored, present: int, reference: str) -> Stream:
    """Return the archive of an image without its first `present` layers."""
    config_name = hashlib.sha256(stored.config).hexdigest() + ".json"
    names = [f"{layer.diff.removeprefix('sha256:')}/layer.tar" for layer in stored.layers]
    manifest = [{"Config": config_name, "RepoTags": [reference], "Layers": names}]
    pieces: list[bytes | tuple[Path, int]] = []
    for name, body in (
        (config_name, stored.config),
        ("manifest.json", json.dumps(manifest).encode()),
    ):
        pieces += [_header(name, len(body)), body, _padding(len(body))]
    for name, layer in list(zip(names, stored.layers, strict=True))[present:]:
        pieces += [_header(name, layer.size), (layer.file, layer.size), _padding(layer.size)]
    pieces.append(bytes(2 * tarfile.BLOCKSIZE))
    key = hashlib.sha256(f"{config_name} {present} {reference}".encode()).hexdigest()[:16]
    return Stream(tuple(pieces), key)


def file_stream(path: Path, key: str) -> Stream:
    """Return a file on this disk as a stream."""
    return Stream(((path, path.stat().st_size),), key)


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o644, 0
    return info.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
