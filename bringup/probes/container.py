"""The container engine and its way to GPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A reachable engine. `runtimes` and `cdi_devices` are what it lists."""

    name: str  # docker or podman
    version: str
    runtimes: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    root: str = ""
    cgroup_driver: str = ""
    cgroup_version: str = ""
