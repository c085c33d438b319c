"""The CUDA toolkit on the host: nvcc in PATH, CUDA_HOME and the default prefixes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nvcc:
    """A CUDA compiler of the host. A container has its own: ask `where_engine_runs`."""

    version: str  # "12.9"
    full: str  # "12.9.86"
    path: str
