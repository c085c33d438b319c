"""What is installed and runs on a practice host: the schema of that part of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from .described import described


@described
class Unit:
    """One systemd service. `log` holds journal lines without their time."""

    description: str
    active: Literal["active", "failed", "inactive"] = "active"
    enabled: Literal["enabled", "disabled"] = "enabled"
    restarts: int = 0
    log: tuple[str, ...] = ()


@described
class FabricManager:
    """What manages the NVSwitches; its service is the unit ``nvidia-fabricmanager``."""

    version: str
    nvlsm: str = ""  # version of the NVLink subnet manager, "" when not installed


@described
class ContainerImage:
    """An image that the engine holds."""

    reference: str
    gib: float
    labels: Mapping[str, str] = field(default_factory=dict)


@described
class Container:
    """A container that was there before anybody asked; `gpus` means all of them."""

    name: str
    image: str
    status: Literal["running", "exited"] = "running"
    gpus: bool = False
    privileged: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@described
class Docker:
    """Docker and its way to GPUs. `cdi` is the driver version in the CDI file, "" for none."""

    version: str
    toolkit: str = ""
    nvidia_runtime: bool = False
    cdi: str = ""
    cgroup_driver: Literal["systemd", "cgroupfs"] = "systemd"
    images: tuple[ContainerImage, ...] = ()
    containers: tuple[Container, ...] = ()


@described
class Toolkit:
    """A CUDA toolkit folder with its compiler."""

    path: str
    version: str


@described
class ModelFolder:
    """A model: stand-in text files, and sparse weight files of the stated size (GiB in all)."""

    path: str
    architecture: str
    model_type: str
    weights_gib: float
    shards: int
    files: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)


@described
class Mount:
    """One line of /proc/mounts, and what `df` says of it, in GiB."""

    device: str
    path: str
    type: str
    options: str = "rw,relatime"
    size_gib: int = 1788
    used_gib: int = 120


@described
class Job:
    """One Slurm job on the host; `gres` such as ``gres/gpu:4``."""

    id: int
    user: str
    state: str = "RUNNING"
    gres: str = "N/A"


@described
class Slurm:
    """The host as a Slurm node."""

    state: str
    reason: str = ""
    partition: str = "gpu"
    epilog: str = ""  # text of an epilog script
    jobs: tuple[Job, ...] = ()
