"""The container engine and its way to GPUs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .readers import podman
from .text import answered, first, space, told


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
    logging_driver: str = ""


@dataclass(frozen=True, slots=True)
class EngineDisk:
    """Space on the disk where the engine keeps its images, in MiB."""

    path: str
    total_mib: int
    free_mib: int


@dataclass(frozen=True, slots=True)
class ContainerToolkit:
    """NVIDIA's container toolkit, by ``nvidia-ctk --version``."""

    version: str


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """What /etc/docker/daemon.json sets, of what matters here."""

    log_driver: str = ""
    log_options: Mapping[str, str] = field(default_factory=dict)
    default_runtime: str = ""


DOWN = "annot connect to the Docker daemon|ailed to connect to the docker API|connect to Podman"
"""How an engine's client says that nobody answers it; docker 29 has words of its own."""

# `docker info` asks the daemon, so a login without access gets its refusal, not an empty answer.
SCRIPT = r"""
if tool docker >/dev/null; then
  echo 'engine docker'; ask docker info --format '{{json .}}'; exit $?
fi
if tool podman >/dev/null; then
  echo 'engine podman'; ask podman info --format json; exit $?
fi
echo 'docker, podman: not found'; exit 127
"""


def parse(section: Section) -> Reading[ContainerEngine]:
    """Return the engine; one that is installed and does not answer is unknown."""
    if section.exit == 127 and section.first == "docker, podman: not found":
        return Absent(section.first)
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    name, _, rest = section.text.partition("\n")
    if name not in ("engine docker", "engine podman"):
        return Unknown("neither docker nor podman was asked", section.first)
    return read_info(rest)


def _object(text: str) -> dict[str, Any]:
    """Return the first JSON object in a text, or {} where there is none."""
    start = text.find("{")
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start) if start >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _from_document(told: Mapping[str, Any], text: str) -> Reading[ContainerEngine]:
    host, store = told.get("host"), told.get("store")
    if isinstance(host, dict) and isinstance(store, dict):
        return _podman(told, host, store)
    version = told.get("ServerVersion")
    if not isinstance(version, str) or not version:
        said = _strings(told.get("ServerErrors")) or tuple(_said(text))
        return Unknown(said[0] if said else "docker info names no server version", *said[:1])
    listed = told.get("DiscoveredDevices")
    devices = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    runtimes = told.get("Runtimes")
    engine = ContainerEngine(
        "docker",
        version,
        runtimes=tuple(sorted(runtimes)) if isinstance(runtimes, dict) else (),
        cdi_devices=tuple(str(d.get("ID", "")) for d in devices if d.get("Source") == "cdi"),
        root=_string(told, "DockerRootDir"),
        cgroup_driver=_string(told, "CgroupDriver"),
        cgroup_version=_string(told, "CgroupVersion"),
        logging_driver=_string(told, "LoggingDriver"),
    )
    return Known(engine, _line(engine))


def _podman(
    told: Mapping[str, Any], host: Mapping[str, Any], store: Mapping[str, Any]
) -> Reading[ContainerEngine]:
    version = told.get("version")
    number = _string(version, "Version") if isinstance(version, dict) else ""
    if not number:
        return Unknown("podman info names no version")
    runtime = host.get("ociRuntime")
    engine = ContainerEngine(
        "podman",
        number,
        runtimes=(_string(runtime, "name"),) if isinstance(runtime, dict) else (),
        root=_string(store, "graphRoot"),
        cgroup_driver=_string(host, "cgroupManager"),
        cgroup_version=_string(host, "cgroupVersion").removeprefix("v"),
        logging_driver=_string(host, "logDriver"),
    )
    return Known(engine, _line(engine))


def _line(engine: ContainerEngine) -> str:
    runtimes = f", runtimes {' '.join(engine.runtimes)}" if engine.runtimes else ""
    return f"{engine.name} {engine.version}{runtimes}"


def _string(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def read_info(text: str) -> Reading[ContainerEngine]:
    """Return what ``docker info`` or ``podman info`` tells, as JSON or as people see it."""
    if document := _object(text):
        return _from_document(document, text)
    if re.search(r"(?m)^store:$", text):
        return _from_document(podman.document(text), text)
    return _read_text(text)


def _read_text(text: str) -> Reading[ContainerEngine]:
    version = re.search(r"(?m)^\s*Server Version:\s*(\S+)", text)
    if version is None:
        said = list(_said(text))
        return Unknown(said[0] if said else "docker info names no server version", *said[:1])
    engine = ContainerEngine(
        "docker",
        version[1],
        runtimes=tuple(_value(text, "Runtimes").split()),
        cdi_devices=tuple(re.findall(r"(?m)^\s+cdi:\s*(\S+)", text)),
        root=_value(text, "Docker Root Dir"),
        cgroup_driver=_value(text, "Cgroup Driver"),
        cgroup_version=_value(text, "Cgroup Version"),
        logging_driver=_value(text, "Logging Driver"),
    )
    return Known(engine, _line(engine))


def _said(text: str) -> list[str]:
    """Return the lines in which docker says what went wrong."""
    found = re.findall(rf"(?m)^.*(?:ERROR|{DOWN}|permission denied).*$", text)
    return [line.strip() for line in found]


def _value(text: str, label: str) -> str:
    found = re.search(rf"(?m)^\s*{re.escape(label)}:[ \t]*(.*)$", text)
    return found[1].strip() if found else ""


DISK = r"""
e=docker; f='{{.DockerRootDir}}'
tool docker >/dev/null || { e=podman; f='{{.Store.GraphRoot}}'; }
t=$(ask $e info --format "$f" 2>&1) || { rc=$?; printf '%s\n' "$t"; exit $rc; }
d=$(printf '%s\n' "$t" | sed -n 's/^ *Docker Root Dir: *//; /^\//p' | head -n 1)
[ -n "$d" ] || { echo "the engine names no folder"; exit 4; }
printf 'root\t%s\n' "$d"; df -kP "$R$d"
"""


def parse_disk(section: Section) -> Reading[EngineDisk]:
    """Return the space where the engine keeps images; absent without an engine."""
    if section.exit == 127 and section.first.endswith(": not found"):
        return Absent(section.first)
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    row = answer.value.strip().rpartition("\n")[2]
    path = first(told(answer.value), "root")
    if (kib := space(row)) is None or not path.startswith("/"):
        return Unknown("df says nothing of the engine's folder", section.first)
    return Known(EngineDisk(path, kib[0] // 1024, kib[1] // 1024), row)


def parse_toolkit(section: Section) -> Reading[ContainerToolkit]:
    """Read ``nvidia-ctk --version``; exit 127 is its absence."""
    answer = looked(section)
    if not isinstance(answer, Known):
        return answer
    found = re.search(r"CLI version v?(\d+\.\d+\S*)", section.text)
    if section.exit != 0 or found is None:
        return Unknown("nvidia-ctk names no version", section.first)
    return Known(ContainerToolkit(found[1]), section.first)


DAEMON = r"""
[ -d "$R/etc" ] || { echo "no folder /etc"; exit 4; }
[ -e "$R/etc/docker/daemon.json" ] || { echo "absent: no /etc/docker/daemon.json"; exit 3; }
cat "$R/etc/docker/daemon.json"
"""


def parse_daemon(section: Section) -> Reading[DaemonConfig]:
    """Read daemon.json; a file that is no JSON object is unknown (docker would not start)."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    try:
        document = json.loads(answer.value)
    except (ValueError, RecursionError):
        return Unknown("/etc/docker/daemon.json is no JSON", section.first)
    if not isinstance(document, dict):
        return Unknown("/etc/docker/daemon.json is no JSON object", section.first)
    options = document.get("log-opts")
    config = DaemonConfig(
        _string(document, "log-driver"),
        {str(k): str(v) for k, v in options.items()} if isinstance(options, dict) else {},
        _string(document, "default-runtime"),
    )
    limits = ", ".join(f"{key}={value}" for key, value in sorted(config.log_options.items()))
    return Known(config, f"log-opts: {limits or 'none'}")


PROBE = Probe("engine", ContainerEngine, SCRIPT, parse, seconds=10, tool="docker")
PROBES = (
    PROBE,
    Probe("engine_disk", EngineDisk, DISK, parse_disk, seconds=8, tool="docker", volatile=True),
    Probe("container_toolkit", ContainerToolkit, "ask nvidia-ctk --version", parse_toolkit),
    Probe("docker_daemon", DaemonConfig, DAEMON, parse_daemon),
)
