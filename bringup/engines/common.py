"""Settings and spellings that engines share."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from ..core.host import Deployment, Role, Scalar
from ..core.rules import World
from ..probes.caches import kernel_folder
from .build import Piece
from .engine import Setting


def below_folder(name: str) -> Callable[[Scalar, World], str]:
    """Return a spelling that puts one kind of cache into its own folder below a knob's.

    Each image, where its digest is known, has folders of its own: kernels that one compiled may
    not be what another one would compile.
    """

    def spell(value: Scalar, world: World) -> str:
        digest = world.deployment.image.digest if world.deployment else ""
        return kernel_folder(str(value), digest, name)

    return spell


def if_address(value: Scalar, _world: World) -> str | None:
    """Return a value that is an address; a name is left to the engine's own detection."""
    try:
        ipaddress.ip_address(str(value))
    except ValueError:
        return None
    return str(value)


TRANSFER = (
    Setting("ucx_net_devices", variable="UCX_NET_DEVICES"),
    Setting("ucx_tls", variable="UCX_TLS"),
    Setting("nccl_ib_hca", variable="NCCL_IB_HCA"),
    Setting("nccl_cumem", variable="NCCL_CUMEM_ENABLE"),
)
"""RDMA devices of this host, for KV (UCX below NIXL) and for collectives (NCCL)."""

CACHES = (
    Setting("cache_folder", variable="TRITON_CACHE_DIR", spell=below_folder("triton")),
    Setting("cache_folder", variable="TORCHINDUCTOR_CACHE_DIR", spell=below_folder("inductor")),
    Setting("cache_folder", variable="FLASHINFER_WORKSPACE_BASE", spell=below_folder("flashinfer")),
)
"""Compiled kernels, kept for the next start."""


def visible(deployment: Deployment, role: Role) -> tuple[Piece, ...]:
    """Choose GPUs by variable where no container does it."""
    if deployment.in_container or not role.gpus:
        return ()
    why = (f"said role {role.name}: gpus {','.join(map(str, role.gpus))}",)
    return (Piece("CUDA_VISIBLE_DEVICES", ",".join(map(str, role.gpus)), why),)
