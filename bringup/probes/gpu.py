"""The GPUs and their driver, from `nvidia-smi -q -x` and /proc."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver reports it. None: the driver gave no usable value ([N/A], ERR!)."""

    index: int
    name: str
    uuid: str = ""
    bus_id: str = ""  # full, e.g. 00000000:1B:00.0
    compute_capability: str = ""  # "10.3"; "" when not told
    memory_mib: int | None = None
    memory_used_mib: int | None = None
    persistence: bool | None = None
    mig: bool | None = None
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    recovery_action: str = ""  # "None", "GPU Reset", …
    power_limit_w: float | None = None
    temperature_c: int | None = None
    fabric_state: str = ""  # "Completed", "In Progress", "N/A", "" when not told
    fabric_status: str = ""


@dataclass(frozen=True, slots=True)
class Gpus:
    """All GPUs that NVML sees, with the versions of driver and CUDA it told."""

    driver: str
    cuda: str  # what the driver can run, not a toolkit
    gpus: tuple[Gpu, ...]
