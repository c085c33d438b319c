"""Host memory, for the hierarchical cache."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """Host memory in MiB; available excludes huge pages."""

    total_mib: int
    available_mib: int
