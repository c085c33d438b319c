"""How hosts are taken from Slurm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """How hosts are to be taken. `wait_s` bounds the wait for jobs; `keep` holds on beyond it."""

    drain: Annotated[bool, Help("drain the node, instead of reserving it")] = False
    days: Annotated[int, Help("days until the reservation ends by itself")] = 30
    reason: Annotated[str, Help("what people read as the reason, as a ticket")] = ""
    user: Annotated[str, Help("user whom the reservation is for")] = "root"
    wait_s: Annotated[float, Help("longest wait for jobs that run, seconds")] = 3600.0
    keep: Annotated[bool, Help("hold the host though jobs still run when the wait is over")] = False
