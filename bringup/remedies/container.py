"""Remedies for CTR: engine, NVIDIA's toolkit, the way to GPUs, the reload trap, logs."""

from __future__ import annotations

from ..core.fixes import Risk
from ..core.reading import Absent, Known, Unknown
from ..core.rules import World
from ..core.steps import Step
from ..core.version import at_least
from ..core.words import quote
from ..probes.access import Access
from ..probes.cdi import CdiSpecs, DeviceLinks
from ..probes.container import ContainerEngine, ContainerToolkit
from ..probes.containers import Containers
from ..probes.driver import Driver
from ..rules.judging import told
from ..steps.command import command_step
from ..steps.edit import docker_daemon
from ..steps.file import text_file
from ..steps.login import member_step
from ..steps.service import restart_step, service_step
from .remedy import Remedy, manager_of
from .sources import packages

DAEMON = "/etc/docker/daemon.json"
TOOLKIT = "nvidia-container-toolkit"
SAFE = "1.18"
"""What CTR-02 passes: before 1.17.8 a container may take over the host, 1.18 makes CDI default."""


def running(world: World) -> tuple[str, ...]:
    """Return the names of running containers."""
    reading = world.facts[Containers]
    listed = reading.value.containers if isinstance(reading, Known) else ()
    return tuple(container.name for container in listed if container.is_running)


def while_containers_run(world: World) -> str:
    """Say why docker must not be restarted now, "" where it may."""
    if isinstance(world.facts[Containers], Unknown):
        return "whether containers run is not known"
    names = running(world)
    return f"a restart of docker would end {', '.join(names)}" if names else ""


def _engine(world: World) -> tuple[Step, ...]:
    reading, manager = world.facts[ContainerEngine], manager_of(world)
    if isinstance(reading, Absent) and manager:
        name = "docker.io" if manager == "apt" else "podman"
        start = (service_step("docker"),) if manager == "apt" else ()
        return (*packages(world, name), *start)
    if not isinstance(reading, Unknown):
        return ()
    if "annot connect to the Docker daemon" in reading.why:
        return (service_step("docker"),)
    access = world.facts[Access]
    if "permission denied" in reading.why and isinstance(access, Known):
        return (member_step(access.value.user, "docker"),)
    return ()


def _toolkit(world: World) -> tuple[Step, ...]:
    """Install it, or bring it to the first version without known flaws; containers go on."""
    reading = world.facts[ContainerToolkit]
    if isinstance(reading, Absent):
        return packages(world, TOOLKIT)
    if isinstance(reading, Known) and at_least(reading.value.version, SAFE) is False:
        return packages(world, TOOLKIT, floor=SAFE)
    return ()


def _is_docker(world: World) -> bool:
    engine = world.facts[ContainerEngine]
    return isinstance(engine, Known) and engine.value.name == "docker"


def _way(world: World) -> tuple[Step, ...]:
    if not isinstance(world.facts[ContainerToolkit], Known):
        return ()
    if isinstance(world.facts[CdiSpecs], Known) or not _is_docker(world):
        return (_cdi(world),)
    runtime = docker_daemon(
        {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}},
        why="docker starts containers with GPUs through this runtime",
    )
    return runtime, _reload(runtime)


_CDI = r"""
f="$R/etc/cdi/nvidia.yaml" v={version}
if [ ! -e "$f" ]; then echo absent
elif grep -qsF -e "$v" "$f"; then echo "$v"
else echo "not for this driver"; fi
"""


def _cdi(world: World) -> Step:
    driver = world.facts[Driver]
    version = (told(driver.value.loaded) if isinstance(driver, Known) else "") or "nvidia.com/gpu"
    return command_step(
        "cdi", "write the CDI specification for the loaded driver",
        _CDI.format(version=quote(version)), version,
        ("nvidia-ctk", "cdi", "generate", "--output=/etc/cdi/nvidia.yaml"), seconds=120,
    )  # fmt: skip


# docker takes new runtimes from its configuration on SIGHUP, without touching containers.
_RUNTIMES = r"""
docker info -f '{{range $name, $_ := .Runtimes}}{{$name}} {{end}}' 2>/dev/null | tr ' ' '\n' |
  grep -qx nvidia && echo offered || echo "not offered"
"""
_HUP = r"""
systemctl kill -s HUP --kill-who=main docker || exit
for _ in $(seq 50); do
  docker info -f '{{range $name, $_ := .Runtimes}}{{$name}} {{end}}' 2>/dev/null | tr ' ' '\n' |
    grep -qx nvidia && exit 0
  sleep 0.2
done
echo "docker did not take the runtime from its configuration" >&2
exit 1
"""


def _reload(runtime: Step) -> Step:
    return command_step(
        "docker-runtime", "let docker read its runtimes anew", _RUNTIMES, "offered",
        ("sh", "-c", _HUP), follows=(runtime.id,),
        why="containers keep running: no restart",
    )  # fmt: skip


_LINKS = r"""
for f in "$R"/dev/nvidia[0-9]* "$R"/dev/nvidiactl "$R"/dev/nvidia-uvm; do
  [ -c "$f" ] || continue
  n=$(stat -c '%t %T' "$f"); set -- $n
  [ -e "$R/dev/char/$((0x$1)):$((0x$2))" ] || { echo "missing for ${f#"$R"}"; exit 0; }
done
echo linked
"""
RULE = (
    'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", '
    'RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"\n'
)


def _links(world: World) -> tuple[Step, ...]:
    if not isinstance(world.facts[ContainerToolkit], Known):
        return ()
    links = world.facts[DeviceLinks]
    if isinstance(links, Known) and links.value.nvidia:
        return ()
    now = command_step(
        "device-links", "link NVIDIA's devices in /dev/char", _LINKS, "linked",
        ("nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all"),
        why="systemd knows devices by these links when it reads its units anew",
    )  # fmt: skip
    rule = text_file(
        "/etc/udev/rules.d/71-bringup-nvidia-dev-char.rules", RULE,
        title="link NVIDIA's devices in /dev/char at every start",
    )  # fmt: skip
    return now, rule


def _logs(world: World) -> tuple[Step, ...]:
    if not _is_docker(world):
        return ()
    edit = docker_daemon(
        {"log-driver": "json-file", "log-opts": {"max-file": "3", "max-size": "100m"}},
        why="logs of containers otherwise fill the disk",
    )
    return edit, restart_step("docker", files=[DAEMON], follows=[edit.id])


ROWS: tuple[Remedy, ...] = (
    Remedy(
        "CTR-05", "link NVIDIA's devices, so that a reload of systemd takes none away", _links, 5,
    ),
    Remedy(
        "CTR-01", "install and start a container engine", _engine, 20,
        cost="a new group counts from the next login on", touches_units=True, on_note=False,
        leads_to=("container-engine", "CTR-03", "CTR-09", "OS-07"),
    ),
    Remedy(
        "CTR-02", "install or upgrade NVIDIA's container toolkit", _toolkit, 21,
        cost="containers go on; those started later use it", touches_units=True,
        leads_to=("container-engine",),
    ),
    Remedy("CTR-03", "offer GPUs to containers", _way, 22,
           leads_to=("container-engine",)),
    Remedy(
        "CTR-09", "limit the logs of containers", _logs, 24, Risk.SERVICE,
        cost="docker restarts; counts for containers made afterwards",
        unless=while_containers_run, touches_units=True,
    ),
)  # fmt: skip
