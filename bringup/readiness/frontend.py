"""What a frontend's answers say: the list of models, and which workers a model still misses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.reading import Absent, Known, Reading, Unknown
from .stages import Peers


def listed(document: Reading[Any]) -> Reading[tuple[str, ...]]:
    """Return the names in an answer of ``/v1/models``."""
    match document:
        case Known({"data": [*rows]}, evidence):
            return Known(tuple(str(row.get("id")) for row in rows), evidence)
        case Known(_, evidence):
            return Unknown("no list of models in the answer", evidence)
        case Unknown() as unknown:
            return unknown
    return Unknown("no answer")


def peers(document: Reading[Any]) -> Reading[Peers]:
    """Return what an answer of ``/v1/models/NAME/ready`` says; absent where no model is known.

    The body tells, not the status: not ready is 200 in Dynamo 1.3 and 503 from 1.6 on.
    """
    match document:
        case Known({"ready": bool(ready), "namespaces": dict(spaces)}, evidence):
            there = _joined(spaces.values(), "present")
            return Known(
                Peers(ready, there, _joined(spaces.values(), "missing_worker_types")), evidence
            )
        case Known({"code": 404}, evidence):
            return Absent(evidence)
        case Unknown() as unknown:
            return unknown
    return Unknown("no readiness in the answer")


def _joined(rows: Iterable[Mapping[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(sorted({str(one) for row in rows for one in row.get(key) or ()}))
