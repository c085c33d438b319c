"""The container engine and its way to GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section


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


SCRIPT = r"""
if tool docker >/dev/null; then echo 'engine docker'; ask docker info; exit $?; fi
if tool podman >/dev/null; then echo 'engine podman'; ask podman --version; exit $?; fi
echo 'docker, podman: not found'; exit 127
"""


def parse(section: Section) -> Reading[ContainerEngine]:
    """Return the engine; one that is installed and does not answer is unknown."""
    if section.exit == 127:
        return Absent(section.first)
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    name, _, rest = section.text.partition("\n")
    if name == "engine podman" and (found := re.search(r"version (\d[\w.]*)", rest)):
        return Known(ContainerEngine("podman", found[1]), found[0])
    return read_info(rest)


def read_info(text: str) -> Reading[ContainerEngine]:
    """Return what `docker info` tells as text."""
    version = re.search(r"(?m)^\s*Server Version:\s*(\S+)", text)
    if version is None:
        errors = re.search(r"(?m)^.*(?:ERROR|annot connect|permission denied).*$", text)
        line = errors[0].strip() if errors else ""
        return Unknown(line or "docker info names no server version", line)
    engine = ContainerEngine(
        "docker",
        version[1],
        runtimes=tuple(_value(text, "Runtimes").split()),
        cdi_devices=tuple(re.findall(r"(?m)^\s+cdi:\s*(\S+)", text)),
        root=_value(text, "Docker Root Dir"),
        cgroup_driver=_value(text, "Cgroup Driver"),
        cgroup_version=_value(text, "Cgroup Version"),
    )
    return Known(engine, f"docker {engine.version}, runtimes {' '.join(engine.runtimes)}")


def _value(text: str, label: str) -> str:
    found = re.search(rf"(?m)^\s*{re.escape(label)}:[ \t]*(.*)$", text)
    return found[1].strip() if found else ""


PROBE = Probe("engine", ContainerEngine, SCRIPT, parse, seconds=10, tool="docker")
