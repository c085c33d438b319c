"""Containers on the host, one image by name, and what a running container of ours can see."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown, evidence_of
from ..core.script import Section
from ..core.words import quote
from .inside import TOOLS_LOOK, Inside, tools_seen
from .parts import joined
from .text import answered, first, limit, natural, told, whole

OURS = "bringup."
"""Prefix of the labels that we set, and the only labels that facts keep."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container, running or not. `ports` are those published on the host.

    `gpu_request` says how GPUs were asked for: "gpus" (the hook injects them, systemd does not
    know), "cdi", "runtime", "devices", or "none". `devices` are nodes and CDI names given to it.
    """

    name: str
    id: str = ""
    image: str = ""
    image_id: str = ""
    state: str = ""  # running, exited, …
    pid: int = 0
    gpu_request: str = "none"
    devices: tuple[str, ...] = ()
    privileged: bool = False
    capabilities: tuple[str, ...] = ()
    memlock: int | None = None  # bytes, -1 unlimited, None when not set for it
    shm_bytes: int | None = None
    ipc: str = ""
    network: str = ""
    runtime: str = ""
    ports: tuple[int, ...] = ()
    log_driver: str = ""
    log_options: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    oom_killed: bool = False  # the kernel ended it for want of memory

    @property
    def is_running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True, slots=True)
class Containers:
    """All containers of the engine, by name."""

    containers: tuple[Container, ...]

    def named(self, name: str) -> Container | None:
        """Return the container of a name, or None."""
        return next((c for c in self.containers if c.name == name), None)


# `.State` and `.HostConfig` hold no environment, so no secret of a container is asked for.
CONTAINERS = r"""
e=docker; tool docker >/dev/null || e=podman
ids=$(ask $e ps -a --no-trunc --format '{{.ID}}') || { rc=$?; printf '%s\n' "$ids"; exit $rc; }
[ -z "$ids" ] || ask $e inspect --type container --format \
  '[{{json .Name}},{{json .Id}},{{json .Config.Image}},{{json .Image}},{{json .State.Status}},{{json .State.Pid}},{{json .HostConfig}},{{json .Config.Labels}}]' \
  $ids || exit $?
echo "end of containers"
"""  # noqa: E501 - one word of the shell


def parse_containers(section: Section) -> Reading[Containers]:
    """Return all containers; absent where no engine is there to have any."""
    if section.exit == 127 and section.first.endswith(": not found"):
        return Absent(section.first)
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    if not answer.value.rstrip().endswith("end of containers"):
        return Unknown("the list of containers was cut off", section.first)
    lines = [line for line in answer.value.splitlines() if line.startswith("[")]
    found = [_container(line) for line in lines]
    if None in found:
        return Unknown("a container could not be read", section.first)
    listed = tuple(sorted((c for c in found if c), key=lambda c: c.name))
    names = ", ".join(f"{c.name} ({c.state})" for c in listed)
    return Known(Containers(listed), names or "no containers")


def _container(line: str) -> Container | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list) or len(values) != 8 or not isinstance(values[0], str):
        return None
    name, identity, image, image_id, state, pid, settings, labels = values
    return container_of(
        name,
        settings if isinstance(settings, dict) else {},
        identity=str(identity),
        image=str(image),
        image_id=str(image_id),
        state=str(state),
        pid=pid if isinstance(pid, int) else 0,
        labels=labels if isinstance(labels, dict) else {},
    )


def container_of(
    name: str,
    settings: Mapping[str, Any],  # Any: docker's own JSON
    *,
    identity: str = "",
    image: str = "",
    image_id: str = "",
    state: str = "running",
    pid: int = 0,
    labels: Mapping[str, Any] | None = None,
) -> Container:
    """Return a container from its ``HostConfig``; a setting of an unexpected type is left out."""
    nodes = tuple(word(d.get("PathOnHost")) for d in _dicts(settings.get("Devices")))
    requests = _dicts(settings.get("DeviceRequests"))
    named = tuple(name for r in requests for name in words(r.get("DeviceIDs")) if "/" in name)
    ulimits = {u.get("Name"): u.get("Soft") for u in _dicts(settings.get("Ulimits"))}
    soft, shm = ulimits.get("memlock"), settings.get("ShmSize")
    log = settings.get("LogConfig")
    return Container(
        name.removeprefix("/"),
        identity,
        image,
        image_id,
        state,
        pid,
        gpu_request=_gpu_request(nodes, requests, word(settings.get("Runtime"))),
        devices=(*nodes, *named),
        privileged=settings.get("Privileged") is True,
        capabilities=words(settings.get("CapAdd")),
        memlock=soft if isinstance(soft, int) else None,
        shm_bytes=shm if isinstance(shm, int) else None,
        ipc=word(settings.get("IpcMode")),
        network=word(settings.get("NetworkMode")),
        runtime=word(settings.get("Runtime")),
        ports=_ports(settings.get("PortBindings")),
        log_driver=word(log.get("Type")) if isinstance(log, dict) else "",
        log_options=strings(log.get("Config")) if isinstance(log, dict) else {},
        labels={k: v for k, v in strings(labels).items() if k.startswith(OURS)},
    )


def _gpu_request(nodes: tuple[str, ...], requests: list[dict[str, Any]], runtime: str) -> str:
    if any(request.get("Driver") == "cdi" for request in requests):
        return "cdi"
    if any("/dev/nvidia" in node for node in nodes):
        return "devices"
    if any(_is_for_gpus(request) for request in requests):
        return "gpus"
    return "runtime" if "nvidia" in runtime else "none"


def _is_for_gpus(request: Mapping[str, Any]) -> bool:
    groups = request.get("Capabilities")
    listed = groups if isinstance(groups, list) else []
    return request.get("Driver") == "nvidia" or any("gpu" in words(group) for group in listed)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def word(value: object) -> str:
    return value if isinstance(value, str) else ""


def strings(value: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


def _ports(bindings: object) -> tuple[int, ...]:
    listed = bindings.values() if isinstance(bindings, dict) else ()
    found = (whole(word(row.get("HostPort"))) for rows in listed for row in _dicts(rows))
    return tuple(sorted({port for port in found if port}))


# Each line is one look, so that one that fails leaves the others. `ls` of a missing folder and a
# refusal must stay apart, hence its words.
_LOOKS = rf"""
smi=$(nvidia-smi -L 2>&1); echo "smi	$?	$smi" | head -n 32
d=$(ls /dev/infiniband 2>&1); echo "nodes	$?	$(echo $d)"
d=$(ibv_devinfo -l 2>&1); echo "rdma	$?	$(echo $d)"
echo "memlock	$(ulimit -l)"; echo "nofile	$(ulimit -n)"
echo "shm	$(df -kP /dev/shm 2>/dev/null | tail -n 1)"
{TOOLS_LOOK}
echo "end	inside"
"""


def inside_probe(container: str) -> Probe[Inside]:
    """Return the question what a running container sees of GPUs, RDMA, limits and /dev/shm."""
    script = f"""
e=docker; tool docker >/dev/null || e=podman
printf 'container\\t%s\\n' {quote(container)}
ask $e exec {quote(container)} sh -c {quote(_LOOKS)}
"""
    return Probe("inside", Inside, script, parse_inside, seconds=15, tool="docker", volatile=True)


def parse_inside(section: Section) -> Reading[Inside]:
    """Return what the container sees; absent where there is no such container that runs."""
    said = section.text.lower()
    if section.exit in (1, 125) and ("no such container" in said or "is not running" in said):
        return Absent(section.text.strip().splitlines()[-1])
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    if first(found, "end") != "inside":
        return Unknown("the container's answer was cut off", section.first)
    code, _, said = first(found, "smi").partition("\t")
    listed = "\n".join((said, *re.findall(r"(?m)^GPU \d+: .*$", answer.value)))
    inside = Inside(
        container=first(found, "container"),
        gpus=gpus_listed(whole(code), listed),
        rdma=devices_listed(first(found, "rdma")),
        rdma_nodes=names_listed(first(found, "nodes")),
        memlock_kib=limit(first(found, "memlock")),
        shm_mib=shm_mib(first(found, "shm")),
        nofile=limit(first(found, "nofile")),
    )
    whole_view = joined(inside, tools_seen(answer.value))
    return Known(whole_view, f"{inside.container}: {evidence_of(inside.gpus)}")


def gpus_listed(code: int | None, text: str) -> Reading[int]:
    """Return how many GPUs ``nvidia-smi -L`` lists; its refusals to see any are 0."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    number = len(set(re.findall(r"(?m)^GPU (\d+): ", text)))
    if code == 0 and number:
        return Known(number, line)
    sees_none = re.search(r"Failed to initialize NVML|No devices were found", text)
    return Known(0, line) if sees_none else Unknown(line or "nvidia-smi told nothing", line)


def names_listed(row: str) -> Reading[tuple[str, ...]]:
    """Read "exit<TAB>names" of ``ls``; only a folder that does not exist is surely empty."""
    code, _, said = row.partition("\t")
    if code == "0":
        return Known(tuple(sorted(said.split(), key=natural)), said)
    return Absent(said) if "No such file or directory" in said else Unknown(said or "not told")


def devices_listed(row: str) -> Reading[tuple[str, ...]]:
    """Read "exit<TAB>text" of ``ibv_devinfo``, with -l or without."""
    said = row.partition("\t")[2]
    if re.search(r"No IB devices found|^0 HCAs? found", said):
        return Known((), said)
    names = re.findall(r"hca_id:\s*(\S+)", said)
    listed = re.search(r"HCAs? found:\s*(.+)", said)
    found = tuple(names or (listed[1].split() if listed else ()))
    return Known(found, said[:200]) if found else Unknown(said[:200] or "not told")


def shm_mib(row: str) -> int | None:
    """Return the size in MiB from the row that ``df -kP`` or ``df -h`` prints for /dev/shm."""
    words = row.split()
    found = re.fullmatch(r"(\d{1,15}(?:\.\d)?)([KMGT]?)", words[1]) if len(words) >= 6 else None
    if found is None:
        return None
    kib = {"": 1, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}[found[2]]
    return int(float(found[1]) * kib) // 1024


def settings_seen(container: Container) -> Inside:
    """Return what the settings of a container say of its inside, to be joined with a look."""
    lock = container.memlock
    return Inside(
        container=container.name,
        memlock_kib=lock // 1024 if lock is not None and lock > 0 else lock,
        shm_mib=container.shm_bytes // 1024**2 if container.shm_bytes else None,
        privileged=container.privileged,
        capabilities=container.capabilities,
        devices=container.devices,
        gpu_request=container.gpu_request,
        network=container.network,
        ipc=container.ipc,
        image_id=container.image_id,
    )


PROBES = (
    Probe(
        "containers", Containers, CONTAINERS, parse_containers,
        seconds=10, tool="docker", volatile=True,
    ),
)  # fmt: skip
