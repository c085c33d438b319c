"""The container's options: what a worker may touch, and no more unless somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.host import Deployment, Role
from ..core.reading import Known
from ..core.rules import World
from ..core.words import Secret
from ..probes.infiniband import InfiniBand
from .engine import Settled, plainly
from .spec import Spec, flag, text

LABELS = "bringup"


def options(spec: Spec, world: World, deployment: Deployment, role: Role) -> tuple[str, ...]:
    """Return the words between ``run`` and the image, name and environment left out."""
    settled = spec.decisions
    return (
        *_labels(spec),
        *("--network", "host"),
        *(_kernel(settled) if spec.has_gpus else ()),
        *(_privileges(settled, world) if spec.has_gpus else ()),
        *(_gpus(settled, role) if spec.has_gpus else ()),
        *("--restart", text(settled, "restart")),
        *_log(settled),
        *(("--volume", f"{spec.data}:{spec.data}") if spec.data else _volumes(settled, deployment)),
    )


def environment(spec: Spec) -> tuple[str, ...]:
    """Return the ``--env`` words of what is no secret."""
    shown = ((n, v) for n, v in spec.command.env.items() if not isinstance(v, Secret))
    return tuple(word for name, value in shown for word in ("--env", f"{name}={value}"))


def _labels(spec: Spec) -> Iterator[str]:
    """Serving tells by these labels whether a container is ours, and whether it drifted."""
    for key, value in (
        ("config", spec.config),
        ("deployment", spec.deployment),
        ("role", spec.role),
    ):
        yield from ("--label", f"{LABELS}.{key}={value}")


def _kernel(settled: Settled) -> Iterator[str]:
    shm = text(settled, "shm")
    yield from ("--ipc", "host") if shm == "host" else ("--shm-size", shm)
    if flag(settled, "share_pid"):
        yield from ("--pid", "host")
    limit = text(settled, "memlock")
    yield from ("--ulimit", f"memlock={'-1' if limit == 'unlimited' else limit}")
    yield from ("--ulimit", "stack=67108864")


def _privileges(settled: Settled, world: World) -> Iterator[str]:
    """RDMA needs the verbs devices and pinned memory, not the run of the host."""
    if text(settled, "privileges") == "privileged":
        yield "--privileged"
        return
    yield from ("--cap-add", "IPC_LOCK")
    rdma = world.facts[InfiniBand]
    if isinstance(rdma, Known) and rdma.value.devices:
        yield from ("--device", "/dev/infiniband")


def _gpus(settled: Settled, role: Role) -> Iterator[str]:
    chosen = [str(gpu) for gpu in role.gpus] or ["all"]
    if text(settled, "gpu_access") == "none":
        return
    if text(settled, "gpu_access") == "cdi":
        for gpu in chosen:
            yield from ("--device", f"nvidia.com/gpu={gpu}")
    elif role.gpus:
        # Docker reads this value as CSV: the inner quotes keep the list in one field.
        yield from ("--gpus", f'"device={",".join(chosen)}"')
    else:
        yield from ("--gpus", "all")


def _log(settled: Settled) -> Iterator[str]:
    yield from ("--log-driver", "json-file")
    yield from ("--log-opt", f"max-size={text(settled, 'log_max_size')}")
    if text(settled, "container_engine") == "docker":  # Podman keeps one file
        yield from ("--log-opt", f"max-file={plainly(settled['log_max_files'].value)}")


def _volumes(settled: Settled, deployment: Deployment) -> Iterator[str]:
    model = deployment.model
    for path in dict.fromkeys((model.path, model.draft_path)):
        if path.startswith("/"):
            yield from ("--volume", f"{path}:{path}:ro")
    if cache := text(settled, "cache_folder"):
        yield from ("--volume", f"{cache}:{cache}")
