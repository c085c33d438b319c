"""What came of making, checking, placing and patching: values that people and machines read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ..core.errors import ToolError
from ..core.rules import Finding
from ..readiness.cards import ModelCard
from .kubernetes import Patch
from .manifest import Manifest
from .match import Difference, Mismatch
from .selection import Left


@dataclass(frozen=True, slots=True)
class BundleReport:
    """A bundle that was made: where, what is in it, what stayed out, and who can read it."""

    place: str
    path: str
    sha256: str
    manifest: Manifest
    left: tuple[Left, ...]
    findings: tuple[Finding, ...]
    readers: Mapping[str, tuple[Finding, ...]]  # release line → what keeps it from listing


@dataclass(frozen=True, slots=True)
class CheckReport:
    """How a bundle stands to a folder or to cards."""

    path: str
    manifest: Manifest
    folder: Difference | None = None
    mismatches: tuple[Mismatch, ...] = ()
    cards: tuple[ModelCard, ...] = ()

    @property
    def is_good(self) -> bool:
        return not self.mismatches and (self.folder is None or self.folder.is_same)


class PushOutcome(Enum):
    """How one target of a push came out."""

    SAME = "same"
    CHANGED = "changed"
    WOULD_CHANGE = "would change"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Placed:
    """One target after a push. `found` is what stood there before; `sent` counts archive bytes."""

    host: str
    path: str
    outcome: PushOutcome
    found: str = ""
    seconds: float = 0.0
    sent: int = 0
    error: ToolError | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A patch in files of its own, and the commands that apply them."""

    patch: Patch
    patch_file: str
    objects_file: str  # "" where the patch needs no objects
    commands: str
