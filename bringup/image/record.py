"""What is kept of a build: inputs, answers of the gate, identities. Written once, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.document import plain
from .context import InputChange, changes

SCHEMA = "bringup.image-record/1"


@dataclass(frozen=True, slots=True)
class Record:
    """One build that passed its gate. `id` is the image's, `base_id` that of its base."""

    name: str
    reference: str
    kept: str  # the name that stays with this image when `reference` moves on
    id: str
    context: str
    inputs: Mapping[str, str]
    base: str
    base_id: str
    base_digests: tuple[str, ...]
    engine_version: str
    versions: Mapping[str, str]
    gate: tuple[Mapping[str, str], ...]
    builder: str
    where: str
    by: str
    pins: tuple[str, ...]
    findings: tuple[Mapping[str, str], ...] = ()
    seconds: float = 0.0
    at: str = ""  # ISO 8601, UTC
    log: str = ""

    @property
    def document(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **plain(self)}


def difference(before: Record, after: Mapping[str, str]) -> tuple[InputChange, ...]:
    """Return which inputs of a build differ from others."""
    return changes(before.inputs, after)


def kept_name(name: str, tag: str, identity: str) -> str:
    """Return the name an image keeps for good: its tag and the first 12 digits of its ID."""
    return f"{name}:{tag}-{identity.removeprefix('sha256:')[:12]}"
