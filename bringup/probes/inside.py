"""What an engine sees inside its image or running container; a host's own tools prove nothing here.

Filled once the image is on the host (see `probe_of`), or from `docker exec` and `docker inspect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.reading import Reading
from .parts import NOT_ASKED
from .toolkit import Nvcc


@dataclass(frozen=True, slots=True)
class Inside:
    """A look from within. None or "": not told; `Reading` fields say why.

    `rdma` are the RDMA devices that verbs sees inside, `gpus` is their count. Memory lock and
    shared memory are in KiB and MiB; a lock of -1 is unlimited.
    """

    image: str = ""
    container: str = ""
    gpus: Reading[int] = NOT_ASKED
    rdma: Reading[tuple[str, ...]] = NOT_ASKED
    rdma_nodes: Reading[tuple[str, ...]] = NOT_ASKED  # names in /dev/infiniband
    nvcc: Reading[Nvcc] = NOT_ASKED
    packages: Mapping[str, str] = field(default_factory=dict)  # name to version
    missing_packages: frozenset[str] | None = None  # asked for and surely absent
    torch_cuda: str = ""
    torch_archs: tuple[str, ...] | None = None  # e.g. "sm_100"
    tools: Mapping[str, bool] = field(default_factory=dict)  # gcc, g++, ninja, ptxas, Python.h
    ucx_transports: tuple[str, ...] | None = None
    memlock_kib: int | None = None
    shm_mib: int | None = None
    nofile: int | None = None
    privileged: bool | None = None
    capabilities: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None  # device paths given one by one, or CDI names
    gpu_request: str = ""  # how GPUs were asked for: "gpus", "cdi", "runtime", "devices", "none"
    network: str = ""
    ipc: str = ""
    mounts: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    image_id: str = ""
