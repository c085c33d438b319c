"""The build context: named bytes that become one deterministic tar, whose digest is the identity.

Equal inputs give equal bytes: sorted names, zeroed times and owners, modes 0644 and 0755 alone.
Wheels that were fetched beforehand travel beside the context and are not part of the identity:
the pins say which they are.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from ..core import document
from .recipe import PatchKind, Recipe

LABEL = "bringup.context"
INPUTS_LABEL = "bringup.inputs"
GATE_LABEL = "bringup.gate"
LIBRARY = "lib/bringup/"
"""Where the programs that run inside the image lie in the context."""


def digest_of(content: bytes) -> str:
    """Return ``sha256:…`` of bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return the tar of named files: the same bytes for the same content."""
    blocks = [_member(name, files[name]) for name in sorted(files)]
    return b"".join([*blocks, bytes(2 * tarfile.BLOCKSIZE)])


def _member(name: str, body: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(body), 0o644, 0
    return info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % tarfile.BLOCKSIZE)


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a build is made from. `digest` is the image's identity."""

    files: Mapping[str, bytes]
    gate: str  # digest of the gate: asked anew when it changes, without a build

    @property
    def digest(self) -> str:
        return digest_of(archive(self.files))

    @property
    def inputs(self) -> dict[str, str]:
        """The first 12 digits of each file's sum, by name: enough to say what changed."""
        return {name: digest_of(body)[7:19] for name, body in sorted(self.files.items())}


def context(
    recipe: Recipe,
    dockerfile: bytes,
    patches: Mapping[str, bytes],
    library: Mapping[str, bytes],
) -> Context:
    """Return the context of a recipe: its Dockerfile, patch files and the programs run inside."""
    files = {
        "Dockerfile": dockerfile,
        "packages.json": packages_document(recipe),
        "patches.json": patches_document(recipe),
        **{f"patches/{name}": body for name, body in patches.items()},
        **{LIBRARY + name: body for name, body in library.items()},
    }
    steps = [(step.check, step.values, step.gpu) for step in recipe.gate]
    return Context(files, document.digest([recipe.engine.path, steps]))


def packages_document(recipe: Recipe) -> bytes:
    """Return what `edge.inside.install` reads: pins, and the engine that must stay as it is."""
    return _json(
        {
            "engine": {"name": recipe.engine.name, "version": recipe.engine.version},
            "no_deps": [str(p) for p in recipe.packages if p.name in recipe.no_deps],
            "packages": [str(p) for p in recipe.packages if p.name not in recipe.no_deps],
            "constraints": [str(p) for p in recipe.constraints],
        }
    )


def patches_document(recipe: Recipe) -> bytes:
    """Return what `edge.inside.patch` reads: each patch, where it goes, what it replaces."""
    return _json(
        [
            {
                "kind": patch.kind.value,
                "source": patch.source,
                "onto": patch.onto,
                "replaces": dict(sorted(patch.replaces.items())),
            }
            for patch in recipe.patches
        ]
    )


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


@dataclass(frozen=True, slots=True)
class InputChange:
    """One input that differs between two builds. "" stands for: not there."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.before:
            return f"{self.name}: new"
        if not self.after:
            return f"{self.name}: gone"
        return f"{self.name}: {self.before} → {self.after}"


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[InputChange, ...]:
    """Return the inputs that differ, by name."""
    return tuple(
        InputChange(name, before.get(name, ""), after.get(name, ""))
        for name in sorted({*before, *after})
        if before.get(name, "") != after.get(name, "")
    )


def patch_files(recipe: Recipe) -> tuple[str, ...]:
    """Return the files below patches/ that the recipe names, sorted."""
    names: set[str] = set()
    for patch in recipe.patches:
        if patch.kind is PatchKind.DIFF:
            names.add(patch.source)
        else:
            names |= {f"{patch.source}/{name}" for name in patch.replaces}
    return tuple(sorted(names))
