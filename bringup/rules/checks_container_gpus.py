"""CTR-03 and CTR-04: does the engine have a way to give GPUs, and did the container get them?"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.cdi import CdiSpecs
from ..probes.container import ContainerEngine
from ..probes.driver import Driver
from ..probes.inside import Inside
from .containing import GENERATE, INSTALL, RELOAD, RUN, of_containers
from .judging import SOFT, gpu_count, gpus_needed, not_told, told, unread


@of_containers
def _way_to_gpus(world: World) -> Seen:
    reading, specs = world.facts[ContainerEngine], world.facts[CdiSpecs]
    if isinstance(reading, Absent):
        return skipped("no container engine on this host")
    if isinstance(reading, Unknown):
        return unread(reading, essential=world.deployment is not None)
    engine = reading.value
    stale = _stale(world)
    if stale:
        return warned(*stale, remedy=GENERATE)
    return _offered(engine) or _specified(world, engine, specs)


def _offered(engine: ContainerEngine) -> Seen | None:
    """Judge what the engine itself lists: a runtime, or devices that it discovered."""
    if "nvidia" in engine.runtimes:
        return passed(f"runtimes: {' '.join(engine.runtimes)}")
    if any("nvidia.com/gpu" in device for device in engine.cdi_devices):
        return passed(f"CDI devices: {' '.join(engine.cdi_devices[:3])}")
    return None


def _specified(world: World, engine: ContainerEngine, specs: Reading[CdiSpecs]) -> Seen:
    """Judge the files of CDI, for an engine that lists nothing of GPUs."""
    if isinstance(specs, Known):
        paths = " ".join(spec.path for spec in specs.value.specs)
        return passed(f"CDI specification: {paths}")
    if gpu_count(world) == 0:
        return skipped("no GPU on this host")
    if isinstance(specs, Unknown) and specs.why != "not asked":
        return unread(specs, essential=world.deployment is not None)
    if isinstance(specs, Absent) and engine.name == "podman":
        return failed(specs.evidence, "podman gives GPUs by CDI alone", remedy=GENERATE)
    if not engine.runtimes:  # an engine lists runc at least, so its list was not told
        return not_told("the engine's runtimes")
    return failed(f"runtimes: {' '.join(engine.runtimes)}", "no CDI device is offered")


def _stale(world: World) -> tuple[str, ...]:
    """Name the CDI files made for another driver: their libraries are gone."""
    specs, driver = world.facts[CdiSpecs], world.facts[Driver]
    loaded = told(driver.value.loaded) if isinstance(driver, Known) else ""
    if not isinstance(specs, Known) or not loaded:
        return ()
    return tuple(
        f"{spec.path} is for driver {spec.driver}, loaded is {loaded}"
        for spec in specs.value.specs
        if spec.driver and spec.driver != loaded
    )


@of_containers
def _gpus_inside(world: World) -> Seen:
    reading, count = world.facts[Inside], gpu_count(world)
    if isinstance(reading, Absent):
        return skipped("no container of ours is up")
    if isinstance(reading, Unknown):
        return unread(reading)
    gpus = reading.value.gpus
    name = reading.value.container or "the image"
    if not isinstance(gpus, Known):
        return not_told(f"GPUs inside {name}")
    if gpus.value == 0 and count != 0:
        lines = (f"{name}: {gpus.evidence}", f"host: {_host(count)}")
        if reading.value.container:
            return failed(*lines)
        # What is up goes on with what it runs; what cannot start serves nobody.
        return failed(*lines, level=Level.BLOCK, remedy=_way_in(gpus.evidence))
    if count is not None and gpus.value < count and not _suffices(world, gpus.value):
        return failed(f"{name} sees {gpus.value} GPUs, the host has {count}")
    return passed(f"{name} sees {gpus.value} GPUs")


WAYS_IN = (
    (r"unsatisfied condition: cuda", "update the driver, or take an image of an older CUDA"),
    (r"unresolvable CDI|inject CDI", GENERATE),
    (r"Insufficient Permissions", "setsebool -P container_use_devices on (SELinux), or start it "
     "with --security-opt label=disable"),
    (r"device rules|cgroup", "set no-cgroups = true in /etc/nvidia-container-runtime/config.toml "
     "(rootless), or use CDI"),
    (r"libnvidia-ml|driver/library|nvml error", "see GPU-02 and GPU-05: the host's driver first"),
)  # fmt: skip
"""What to do, by what a container said when it got no GPU."""


def _way_in(said: str) -> str:
    return next((remedy for pattern, remedy in WAYS_IN if re.search(pattern, said)), INSTALL)


def _host(count: int | None) -> str:
    return f"{count} GPUs, so this is no hardware fault" if count else "not told"


def _suffices(world: World, seen: int) -> bool:
    """Tell whether the role takes only some GPUs, and the container was given as many."""
    if world.role is not None and world.role.gpus:
        return True
    needed = gpus_needed(world)
    return needed is not None and seen >= needed


ROWS: tuple[Row[World], ...] = (
    Row(
        "CTR-03", "A container can get GPUs", _way_to_gpus,
        "docker needs the nvidia runtime or CDI devices; a directory for CDI alone offers nothing",
        "https://github.com/docker/cli/issues/2425", INSTALL,
    ),
    Row(
        "CTR-04", "The container sees the host's GPUs", _gpus_inside,
        "after systemctl daemon-reload a container may lose its GPUs while the host is healthy; "
        "what runs goes on until it starts a new process",
        RELOAD, f"recreate the container with {RUN} or with explicit device nodes", SOFT,
    ),
)  # fmt: skip
