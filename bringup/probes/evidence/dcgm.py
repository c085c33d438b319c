"""What `dcgmi diag` and `dcgmi health` told."""

from __future__ import annotations

from collections.abc import Iterator

from .. import diagnosis
from .asked import Asked, Output
from .piece import Piece, Readers


def read_dcgmi(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `dcgmi diag -r N` and `dcgmi health -c`; a host engine that is down tells nothing."""
    if asked.has("diag", "health") and not output.is_missing and not asked.is_cut:
        yield Piece(diagnosis.Diagnosis, diagnosis.read(output.stdout))


READERS: Readers = {"dcgmi": read_dcgmi}
