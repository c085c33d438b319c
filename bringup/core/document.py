"""Frozen values as plain data, and plain data as the one true bytes: for digests, plans, JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from .reading import Absent, Known, Unknown
from .words import Secret


def plain(value: object) -> Any:  # noqa: ANN401, PLR0911 - JSON is what it is; one row a case
    """Return dicts, lists and scalars for a value. Secrets become ``***``; empty fields stay."""
    match value:
        case Known():
            return {
                "state": "known",
                "value": plain(value.value),
                "evidence": value.evidence,
            }
        case Absent():
            return {"state": "absent", "evidence": value.evidence}
        case Unknown():
            return {"state": "unknown", "why": value.why, "evidence": value.evidence}
        case Secret():
            return "***"
        case Enum():
            return value.value
        case bytes():
            return {"sha256": sum_of(value), "bytes": len(value)}
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
            return [plain(item) for item in items]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


_LARGE_BYTES = 16 * 1024


def sum_of(content: bytes) -> str:
    """Return the SHA-256 of a content; one that goes to many hosts is read once for all."""
    large = len(content) >= _LARGE_BYTES
    return _sum_kept(content) if large else hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=32)
def _sum_kept(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def dump(value: object) -> str:
    """Return indented JSON of plain data, keys in their own order, ending in a newline."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n"


def digest(value: object) -> str:
    """Return ``sha256:…`` of a value, independent of key order."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
