"""The manifest of a bundle: its files with size and sums, and which model they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.document import digest
from ..core.errors import UsageError
from .names import trouble

SCHEMA = "bringup.bundle/1"


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file: size in bytes, sums in hexadecimal. `blake3` is what Dynamo's cards carry."""

    name: str
    size: int
    sha256: str
    blake3: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Which model the files belong to, read from the files. "" means: they do not say."""

    config_sha256: str = ""
    model_type: str = ""
    architecture: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files by name, and the identity of the model."""

    files: tuple[BundleFile, ...]
    identity: Identity = Identity()

    @property
    def digest(self) -> str:
        """``sha256:…`` of names, sizes and sums: equal files give equal digests, wherever made."""
        return digest([(file.name, file.size, file.sha256) for file in self.files])

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def file(self, name: str) -> BundleFile | None:
        return next((file for file in self.files if file.name == name), None)


def make_manifest(files: Iterable[BundleFile], identity: Identity) -> Manifest:
    """Return the manifest of files, in the one order that they have everywhere."""
    return Manifest(tuple(sorted(files, key=lambda file: file.name)), identity)


def dump_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as JSON in plain ASCII: the same bytes under every locale."""
    document = {
        "schema": SCHEMA,
        "digest": manifest.digest,
        "identity": {name: getattr(manifest.identity, name) for name in _IDENTITY},
        "files": [{name: getattr(file, name) for name in _FILE} for file in manifest.files],
    }
    return (json.dumps(document, indent=1, ensure_ascii=True) + "\n").encode()


def parse_manifest(data: bytes, *, where: str) -> Manifest:
    """Return the manifest in JSON that `dump_manifest` wrote; `where` names it in errors.

    Raises UsageError for anything else, and when the digest does not fit the files.
    """
    try:
        document = json.loads(data)
        schema = document["schema"]
        files = tuple(_file(row) for row in document["files"])
        identity = Identity(**{name: str(document["identity"][name]) for name in _IDENTITY})
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read the manifest of {where}: {error!r}") from error
    if schema != SCHEMA:
        raise UsageError(f"cannot read the manifest of {where}: unknown schema {schema!r}")
    manifest = make_manifest(files, identity)
    if manifest.digest != document.get("digest"):
        raise UsageError(f"cannot trust the manifest of {where}: its digest does not fit its files")
    return manifest


_IDENTITY = ("config_sha256", "model_type", "architecture", "revision")
_FILE = ("name", "size", "sha256", "blake3")


def _file(row: Mapping[str, Any]) -> BundleFile:
    file = BundleFile(str(row["name"]), int(row["size"]), str(row["sha256"]), str(row["blake3"]))
    if trouble(file.name):
        raise ValueError(f"{file.name!r}: {trouble(file.name)}")
    return file
