"""CTR-01 to CTR-09: can a container be started with GPUs, and does the running one have them?"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.cdi import CdiSpecs, DeviceLinks
from ..probes.container import (
    DOWN,
    ContainerEngine,
    ContainerToolkit,
    DaemonConfig,
    EngineDisk,
)
from ..probes.containers import Container, Containers
from ..probes.inside import Inside
from ..probes.stored_image import StoredImage
from ..probes.text import version
from . import ports, where
from .checks_gpu_use import OURS
from .containing import INSTALL, RELOAD, RUN, of_containers
from .judging import QUIET, SOFT, not_told, unread

SAFE, NEWEST_FLAWED = (1, 17, 8), (1, 18)
LEAST_MIB, NEEDED_MIB = 20 * 1024, 100 * 1024  # our own words: images take 15 to 50 GiB
OLD_ENGINE = (20, 10)


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
    if re.search(DOWN, reading.why):
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


def _may_be_ours(container: Container) -> bool:
    """Only what we started has labels; an engine's container without them is NET-05's to judge."""
    return bool(container.labels) or bool(OURS.search(f"{container.name} {container.image}"))


@of_containers
def _clash(world: World) -> Seen:
    """Name containers that publish a port which we plan to take; NET-05 tells the other owners."""
    reading = world.facts[Containers]
    if isinstance(reading, Absent):
        return skipped("no container engine on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    ours = [c for c in _running(world) if c.labels]
    planned = {where.number(world, "http_port", 0), *ports.planned(world).values()} - {0}
    foreign = [c for c in _running(world) if planned & set(c.ports) and not _may_be_ours(c)]
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
