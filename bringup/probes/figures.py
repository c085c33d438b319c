"""What others measured or logged of the ways between GPUs; bringup itself does not ask for these.

Logs and figures come with a case: nccl-tests, perftest, and what NCCL says with NCCL_DEBUG=INFO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NcclNetwork:
    """The network that NCCL chose between hosts: "IB" or "Socket"."""

    name: str


@dataclass(frozen=True, slots=True)
class RailFigures:
    """Gb/s that perftest moved over each RDMA device; None where the transfer broke."""

    by_device: Mapping[str, float | None] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)  # how each transfer broke


@dataclass(frozen=True, slots=True)
class Reduced:
    """Best bus bandwidth of a collective operation with large messages, in GB/s."""

    gb_s: float
    gpus: int
    hosts: int
    by: str
