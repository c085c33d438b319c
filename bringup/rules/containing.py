"""What checks of containers share: where they apply, and how a container is given GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from ..core.rules import Seen, World, skipped

INSTALL = (
    "install nvidia-container-toolkit, then: nvidia-ctk runtime configure --runtime=docker && "
    "systemctl restart docker (or, for CDI: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml)"
)
GENERATE = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
RELOAD = "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227"
RUN = "--device nvidia.com/gpu=all"


def of_containers(look: Callable[[World], Seen]) -> Callable[[World], Seen]:
    """Make a row's look from one that only matters where the engine runs in a container."""

    @wraps(look)
    def whole(world: World) -> Seen:
        if world.deployment is not None and not world.deployment.in_container:
            return skipped("the engine runs on the host, not in a container")
        return look(world)

    return whole
