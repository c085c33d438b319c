"""What an image is made of, as values; `edge.image_file` reads them from `images/NAME/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ..core.host import Image, Origin, Scalar
from .pins import Pin

NOWHERE = Origin()

NEW = "new"
"""Stands in place of a sum for a file that the base does not have."""


@dataclass(frozen=True, slots=True)
class Base:
    """The image that everything lies on. `digest` is ``sha256:…`` or "", then only the tag says."""

    reference: str
    digest: str = ""
    origin: Origin = NOWHERE

    @property
    def pinned(self) -> str:
        """The reference to build from: by digest, or by the tag where nothing is pinned."""
        if not self.digest:
            return self.reference
        return f"{repository(self.reference)}@{self.digest}"


def repository(reference: str) -> str:
    """Return a reference without its tag and digest: ``host:5000/a/b:tag`` → ``host:5000/a/b``."""
    name = reference.partition("@")[0]
    head, colon, tail = name.rpartition(":")
    return head if colon and "/" not in tail else name


def same_repository(one: str, other: str) -> bool:
    """Return whether two references are of one repository; Docker Hub's names have a short form."""
    plain = (repository(name).removeprefix("docker.io/") for name in (one, other))
    first, second = (name.removeprefix("library/") for name in plain)
    return first == second


@dataclass(frozen=True, slots=True)
class EngineInside:
    """The engine that the base carries: its distribution, import name, version and source folder.

    `version` "" means that nobody said; `path` is the folder whose files are really imported.
    """

    name: str
    version: str = ""
    path: str = ""
    origin: Origin = NOWHERE


class PatchKind(Enum):
    """How a patch comes: whole files laid over a folder, or a unified diff."""

    OVERLAY = "overlay"
    DIFF = "diff"


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch. `replaces` maps each file below `onto` to the sha256 it must have, or `NEW`."""

    kind: PatchKind
    source: str  # below the image's patches/ folder: a folder (overlay) or a file (diff)
    onto: str  # absolute folder in the image
    reason: str
    link: str
    replaces: Mapping[str, str]
    origin: Origin = NOWHERE


@dataclass(frozen=True, slots=True)
class GateStep:
    """One question to the built image: a check that `edge.inside.gate` knows, and its values."""

    check: str
    values: Mapping[str, Scalar | tuple[str, ...]]
    gpu: bool = False  # asks only where the engine has GPUs
    origin: Origin = NOWHERE


@dataclass(frozen=True, slots=True)
class Recipe:
    """One image folder, read and checked. `tag` and `name` make the reference that hosts run."""

    name: str
    tag: str
    base: Base
    engine: EngineInside
    packages: tuple[Pin, ...]
    no_deps: tuple[str, ...] = ()
    constraints: tuple[Pin, ...] = ()
    base_packages: Mapping[str, str] | None = None  # what the base has; None: not recorded
    patches: tuple[Patch, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    provides: Mapping[str, str] = field(default_factory=dict)
    gate: tuple[GateStep, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    python: str = "3.12"
    platforms: tuple[str, ...] = ()
    origin: Origin = NOWHERE

    @property
    def reference(self) -> str:
        return f"{self.name}:{self.tag}"

    def version_of(self, package: str) -> str:
        """Return the version a package is pinned to, or ""."""
        return next((pin.version for pin in self.packages if pin.name == package), "")

    @property
    def promise(self) -> Image:
        """What rules may rely on about the place where the engine runs."""
        return Image(
            name=self.name,
            reference=self.reference,
            engine_version=self.engine.version,
            dynamo_version=self.version_of("ai-dynamo"),
            nvcc=self.provides.get("nvcc", ""),
            flashinfer=self.provides.get("flashinfer", ""),
            origin=self.origin,
        )
