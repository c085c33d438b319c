"""CTR-01 to CTR-09: can a container be started with GPUs, and does the running one have them?"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.container import (
    CdiSpecs,
    ContainerEngine,
    ContainerToolkit,
    DaemonConfig,
    DeviceLinks,
    EngineDisk,
)
from ..probes.containers import Container, Containers
from ..probes.driver import Driver
from ..probes.inside import Inside
from ..probes.stored_image import StoredImage
from ..probes.text import version
from . import where
from .judging import QUIET, SOFT, gpu_count, not_told, told, unread

INSTALL = (
    "install nvidia-container-toolkit, then: nvidia-ctk runtime configure --runtime=docker && "
    "systemctl restart docker (or, for CDI: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml)"
)
RELOAD = "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227"
RUN = "--device nvidia.com/gpu=all"
SAFE, NEWEST_FLAWED = (1, 17, 8), (1, 18)
LEAST_MIB, NEEDED_MIB = 20 * 1024, 100 * 1024  # our own words: images take 15 to 50 GiB
OLD_ENGINE = (20, 10)


def of_containers(look: Callable[[World], Seen]) -> Callable[[World], Seen]:
    """Make a row's look from one that only matters where the engine runs in a container."""

    @wraps(look)
    def whole(world: World) -> Seen:
        if world.deployment is not None and not world.deployment.in_container:
            return skipped("the engine runs on the host, not in a container")
        return look(world)

    return whole


@of_containers
def _engine(world: World) -> Seen:
    reading = world.facts[ContainerEngine]
    must = world.deployment is not None
    level = Level.BLOCK if must else Level.NOTE
    if isinstance(reading, Absent):
        remedy = "apt-get install docker.io (or docker-ce, or podman), or serve without a container"
        return failed(reading.evidence, level=level, remedy=remedy)
    if isinstance(reading, Known):
        return _age(reading.value, reading.evidence)
    if "permission denied" in reading.why:
        remedy = "usermod -aG docker USER and log in anew, or set sudo: true for the host"
        return failed(reading.evidence or reading.why, level=_worse(level), remedy=remedy)
    if "annot connect to the Docker daemon" in reading.why:
        return failed(reading.why, level=_worse(level), remedy="systemctl start docker")
    return unread(reading, essential=must)


def _worse(level: Level) -> Level:
    """An engine that is there and does not answer is worth more than a note."""
    return Level.WARN if level is Level.NOTE else level


def _age(engine: ContainerEngine, line: str) -> Seen:
    number = version(engine.version)
    if engine.name == "docker" and number and number < OLD_ENGINE:
        return warned(line, remedy="upgrade docker: --gpus and BuildKit need 20.10 or later")
    return passed(line)


@of_containers
def _toolkit(world: World) -> Seen:
    reading = world.facts[ContainerToolkit]
    if isinstance(world.facts[ContainerEngine], Absent):
        return skipped("no container engine on this host")
    if isinstance(reading, Absent):
        return failed(reading.evidence, remedy=INSTALL)
    if isinstance(reading, Unknown):
        return unread(reading)
    number = version(reading.value.version)
    if number < SAFE:
        return failed(f"{reading.evidence}: before 1.17.8 a container may take over the host")
    return passed(reading.evidence) if number >= NEWEST_FLAWED else warned(reading.evidence)


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
        return warned(*stale, remedy="nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
    if "nvidia" in engine.runtimes:
        return passed(f"runtimes: {' '.join(engine.runtimes)}")
    if any("nvidia.com/gpu" in device for device in engine.cdi_devices):
        return passed(f"CDI devices: {' '.join(engine.cdi_devices[:3])}")
    if isinstance(specs, Known):
        paths = " ".join(spec.path for spec in specs.value.specs)
        return passed(f"CDI specification: {paths}")
    if gpu_count(world) == 0:
        return skipped("no GPU on this host")
    if isinstance(specs, Unknown) and specs.why != "not asked":
        return unread(specs, essential=world.deployment is not None)
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
        return failed(*lines, level=Level.BLOCK, remedy=INSTALL)
    if count is not None and gpus.value < count and not _takes_some(world):
        return failed(f"{name} sees {gpus.value} GPUs, the host has {count}")
    return passed(f"{name} sees {gpus.value} GPUs")


def _host(count: int | None) -> str:
    return f"{count} GPUs, so this is no hardware fault" if count else "not told"


def _takes_some(world: World) -> bool:
    return world.role is not None and bool(world.role.gpus)


@of_containers
def _reload(world: World) -> Seen:
    engine, inside = world.facts[ContainerEngine], world.facts[Inside]
    if not isinstance(engine, Known):
        return skipped("no container engine that answers")
    driver = engine.value.cgroup_driver
    if not driver:
        return not_told("the engine's cgroup driver")
    if driver != "systemd":
        return passed(f"cgroup driver {driver}")
    links = world.facts[DeviceLinks]
    if isinstance(links, Known) and links.value.nvidia:
        return passed(f"cgroup driver systemd, {links.evidence}")
    at_risk = [c.name for c in _running(world) if c.gpu_request == "gpus"]
    if isinstance(inside, Known) and inside.value.gpu_request == "gpus":
        at_risk.append(inside.value.container)
    if at_risk:
        return warned(
            f"cgroup driver systemd, plain --gpus request: {' '.join(sorted(set(at_risk)))}"
        )
    if isinstance(inside, Known) and inside.value.gpu_request in ("cdi", "devices"):
        return passed(f"{inside.value.container} names its devices one by one")
    if engine.value.cdi_devices or isinstance(world.facts[CdiSpecs], Known):
        return passed(f"CDI is there: start containers with {RUN}")
    return warned("cgroup driver systemd, no CDI, no device links", level=Level.NOTE)


def _running(world: World) -> tuple[Container, ...]:
    reading = world.facts[Containers]
    listed = reading.value.containers if isinstance(reading, Known) else ()
    return tuple(container for container in listed if container.is_running)


@of_containers
def _image(world: World) -> Seen:
    reading, deployment = world.facts[StoredImage], world.deployment
    if deployment is None:
        return skipped("no deployment names an image")
    if isinstance(reading, Absent):
        return warned(f"{deployment.image.reference} is not on this host", level=Level.NOTE)
    if isinstance(reading, Unknown):
        return unread(reading)
    image, want = reading.value, deployment.image.digest
    if not want:
        pin = f"write image.digest: {image.id} into the deployment, where this is the one you mean"
        line = f"{image.id[:19]}, and no digest to compare with"
        return warned(line, level=Level.NOTE, remedy=pin)
    known = (image.id, *(digest.rpartition("@")[2] for digest in image.digests))
    if want in known or want in image.labels.values():
        return passed(f"{deployment.image.reference} is {want[:19]}")
    return failed(f"on the host {image.id[:19]}, built {want[:19]}")


@of_containers
def _space(world: World) -> Seen:
    reading, image = world.facts[EngineDisk], world.facts[StoredImage]
    if isinstance(reading, Absent):
        return skipped("no container engine on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    free = reading.value.free_mib
    line = f"{reading.value.path}: {free // 1024} GiB free"
    size = image.value.bytes if isinstance(image, Known) else None
    if size:
        small = free < size // 1024**2 // 10
        return warned(f"{line}, the image is there") if small else passed(line)
    if free < LEAST_MIB:
        return failed(line)
    return passed(line) if free >= NEEDED_MIB else warned(line, level=Level.NOTE)


@of_containers
def _clash(world: World) -> Seen:
    """Name containers that publish a port which we plan to take; NET-05 tells the other owners."""
    reading = world.facts[Containers]
    if isinstance(reading, Absent):
        return skipped("no container engine on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    ours = [c for c in _running(world) if c.labels]
    planned = {where.number(world, knob, 0) for knob in ("port", "http_port")} - {0}
    foreign = [c for c in _running(world) if not c.labels and planned & set(c.ports)]
    if foreign:
        return failed(*(f"{c.name} holds port {min(planned & set(c.ports))}" for c in foreign))
    sick = [c for c in ours if c.state not in ("running", "created")]
    if sick:
        return warned(*(f"{c.name} is {c.state}" for c in sick))
    return passed(f"ours: {' '.join(c.name for c in ours) or 'none'}")


@of_containers
def _logs(world: World) -> Seen:
    engine, config = world.facts[ContainerEngine], world.facts[DaemonConfig]
    if not isinstance(engine, Known) or engine.value.name != "docker":
        return skipped("no docker that answers")
    driver = engine.value.logging_driver
    if driver and driver != "json-file":
        return passed(f"logging driver {driver}")
    if isinstance(config, Known) and "max-size" in config.value.log_options:
        return passed(config.evidence)
    if isinstance(config, Unknown):
        return unread(config)
    endless = [c.name for c in _running(world) if "max-size" not in c.log_options and c.labels]
    what = f", {' '.join(endless)} too" if endless else ""
    return warned(f"json-file without max-size: logs grow without end{what}")


ROWS: tuple[Row[World], ...] = (
    Row(
        "CTR-01", "The login can use a container engine", _engine,
        "a worker in a container needs an engine that answers this login",
        "https://docs.docker.com/engine/install/linux-postinstall/",
    ),
    Row(
        "CTR-02", "NVIDIA's container toolkit is safe and current", _toolkit,
        "before 1.17.8 a container can break out to the host (CVE-2025-23266); from 1.18 CDI is "
        "the default",
        "https://github.com/NVIDIA/nvidia-container-toolkit/releases/tag/v1.17.8",
        "apt-get install --only-upgrade nvidia-container-toolkit", SOFT,
    ),
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
    Row(
        "CTR-05", "A reload of systemd leaves containers their GPUs", _reload,
        "devices that a hook injects are unknown to systemd, which drops them at daemon-reload",
        RELOAD,
        f"start containers with {RUN}; or nvidia-ctk system create-dev-char-symlinks "
        "--create-all; or the cgroupfs driver",
    ),
    Row(
        "CTR-06", "The image is the one that was built", _image,
        "two hosts with different images under one tag fail in ways that look like network faults",
        "https://github.com/sparkrun/sparkrun/issues/67", "carry the image to this host again",
        QUIET,
    ),
    Row(
        "CTR-07", "The engine's disk has room for the image", _space,
        "a load needs room for layers and their archive at once",
        "docs/checks.md#ctr-07", "docker image ls; remove named images: docker image rm NAME",
        SOFT,
    ),
    Row(
        "CTR-08", "No foreign container is in the way", _clash,
        "a container that holds our port would answer in our worker's place",
        "docs/checks.md#ctr-08", "ask its owner, or set another port for this host",
    ),
    Row(
        "CTR-09", "Container logs are limited", _logs,
        "an engine that logs each request fills the disk within weeks",
        "https://docs.docker.com/engine/logging/configure/",
        'set in /etc/docker/daemon.json: "log-opts": {"max-size": "100m", "max-file": "5"}', QUIET,
    ),
)  # fmt: skip
