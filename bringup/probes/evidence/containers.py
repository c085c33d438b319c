"""What docker, podman and nvidia-ctk told, and what a look into a container showed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...core.reading import Absent, Known
from ..cdi import CdiSpec, CdiSpecs, DeviceLinks
from ..compilers import Compilers
from ..container import (
    ContainerToolkit,
)
from ..containers import (
    Container,
    Containers,
    container_of,
    devices_listed,
    gpus_listed,
    names_listed,
    settings_seen,
)
from ..environment import Environment
from ..figures import NcclNetwork, Reduced
from ..inside import Inside
from ..packages import PythonPackages
from ..proof import CudaProof
from ..toolkit import Nvcc
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known

REFUSALS = (
    r'could not select device driver "" with capabilities: \[\[gpu\]\]',
    r"unresolvable CDI devices? \S+",
    r"unknown or invalid runtime name: nvidia",
    r"nvidia-container-cli: .*",
    r"failed to discover GPU vendor from CDI.*",
    r"failed to inject CDI devices.*",
)
"""How an engine says that it cannot give GPUs to a container."""


def read_inspect(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker inspect NAME`, whole or by a format of named settings."""
    names = [word for word in asked.operands if word not in ("inspect", "container")]
    form = asked.after("--format", "-f")
    names = [name for name in names if name != form]
    if re.search(r"No such (?:object|container)", output.text):
        yield absent(Inside, output.line)
    if output.code != 0 or not names:
        return
    state = _state(form, output.stdout)
    if state.get("OOMKilled", "").lower() == "true":
        ended = Container(names[0], state=state.get("Status", "exited"), oom_killed=True)
        yield known(Containers((ended,)), f"{names[0]}: OOMKilled")
    settings = _settings(form, output.stdout.strip()) if form else _whole(output.stdout)
    if settings:
        container = container_of(names[0], settings)
        yield known(Containers((container,)), output.line)
        yield Piece(Inside, Known(_only_told(container, settings), output.line))


def _state(form: str, text: str) -> dict[str, str]:
    """Return fields of a container's state, from the whole document or by the form's own order."""
    if not form:
        return {key: str(value) for key, value in _part(text, "State").items()}
    field = r"\{\{\s*(?:json )?\.State\.(\w+)\s*\}\}"
    names, values = re.findall(field, form), text.split()
    rest = re.sub(field, "", form).strip()
    return dict(zip(names, values, strict=True)) if not rest and len(names) == len(values) else {}


def _only_told(container: Container, settings: dict[str, Any]) -> Inside:
    """A setting that was not asked for is not told, rather than off."""
    seen = settings_seen(container)
    needs: dict[str, tuple[str, ...]] = {
        "privileged": ("Privileged",),
        "capabilities": ("CapAdd",),
        "devices": ("Devices",),
        "gpu_request": ("DeviceRequests",),
        "memlock_kib": ("Ulimits",),
        "shm_mib": ("ShmSize",),
        "network": ("NetworkMode",),
        "ipc": ("IpcMode",),
    }
    told = {
        field: getattr(seen, field)
        for field, keys in needs.items()
        if all(key in settings for key in keys)
    }
    return Inside(container=seen.container, **told)


def _whole(text: str) -> dict[str, Any]:
    return _part(text, "HostConfig")


def _part(text: str, name: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    first = document[0] if isinstance(document, list) and document else document
    part = first.get(name) if isinstance(first, dict) else None
    return part if isinstance(part, dict) else {}


def _settings(form: str, text: str) -> dict[str, Any]:
    """Read values in the order in which a format names them: ``{{json .HostConfig.Devices}}``."""
    fields = re.findall(r"\{\{\s*(json )?\.HostConfig\.(\w+)\s*\}\}", form)
    others = re.sub(r"\{\{\s*(?:json )?\.HostConfig\.\w+\s*\}\}", "", form).strip()
    decoder, place = json.JSONDecoder(), 0
    found: dict[str, Any] = {}
    if others:
        return {}
    for is_json, name in fields:
        while place < len(text) and text[place].isspace():
            place += 1
        try:
            value, place = decoder.raw_decode(text, place) if is_json else _bare(name, text, place)
        except (ValueError, RecursionError):
            return found
        found[name] = value
    return found


def _bare(name: str, text: str, place: int) -> tuple[Any, int]:
    """Read a word that was printed without json: a number, a truth value, or a name."""
    word = re.compile(r"\S+").match(text, place)
    if word is None:
        raise ValueError(name)
    value: object = {"true": True, "false": False}.get(word[0], word[0])
    return (int(word[0]) if word[0].isdecimal() else value), word.end()


def read_ctk(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nvidia-ctk --version`, `nvidia-ctk cdi list`."""
    if output.is_missing:
        yield absent(ContainerToolkit, output.line)
    elif asked.has("cdi"):
        devices = tuple(re.findall(r"(?m)^(nvidia\.com/gpu=\S+)$", output.stdout))
        if not devices and (none := re.search(r"Found 0 CDI devices", output.text)):
            yield absent(CdiSpecs, none[0])
        elif devices:
            yield known(CdiSpecs((CdiSpec("", devices=devices),)), ", ".join(devices))
    else:
        version = re.search(r"CLI version v?(\d+\.\d+\S*)", output.stdout)
        if version:
            yield known(ContainerToolkit(version[1]), output.line)


def read_cli(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nvidia-container-cli --version`, of the same toolkit."""
    del asked
    version = re.search(r"(?m)^cli-version: (\d+\.\d+\S*)", output.stdout)
    if output.is_missing:
        yield absent(ContainerToolkit, output.line)
    elif version:
        yield known(ContainerToolkit(version[1]), output.line)


def read_cdi_folders(output: Output) -> Iterator[Piece]:
    """Read `ls /etc/cdi /var/run/cdi`."""
    files = re.findall(r"(?m)^\S*\bnvidia\S*\.(?:ya?ml|json)$", output.stdout)
    if files:
        specs = tuple(CdiSpec(name, devices=("all",)) for name in files)
        yield known(CdiSpecs(specs), ", ".join(files))
    elif output.has_no_file and not output.stdout.strip():
        yield absent(CdiSpecs, output.line)


def read_cdi_file(path: str, output: Output) -> Iterator[Piece]:
    """Read a CDI specification, whole or through grep: the driver that it was made for."""
    versions = set(re.findall(r"lib(?:cuda|nvidia-ml)\.so\.(\d{3}(?:\.\d+)+)", output.stdout))
    if output.code == 0 and versions:
        spec = CdiSpec(path, max(versions), ("all",))
        yield known(CdiSpecs((spec,)), f"{path}: driver {spec.driver}")
    elif output.has_no_file:
        yield absent(CdiSpecs, output.line)


def read_device_links(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls -l /dev/char | grep nvidia`."""
    word = output.stdout.strip()
    if asked.is_counted and word.isdecimal():
        yield known(DeviceLinks(int(word)), f"{word} links in /dev/char to NVIDIA devices")
    elif not asked.is_counted and output.code in (0, 1):
        number = len(re.findall(r"-> \.\./nvidia", output.stdout))
        yield known(DeviceLinks(number), f"{number} links in /dev/char to NVIDIA devices")


def look_inside(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read a command that ran in a container or in an image of the engine."""
    kind, _, name = asked.place.partition(" ")
    base = Inside(container=name) if kind == "container" else Inside(image=name)
    yield known(base, asked.place)
    row = f"{output.code}\t{_short(output.text.strip())}"
    if asked.program == "nvidia-smi" and not asked.has("topo", "nvlink"):
        if any(re.search(pattern, output.text) for pattern in REFUSALS):
            return
        reading = gpus_listed(output.code, output.text)
        yield known(Inside(gpus=reading), output.line)
    elif asked.program == "ls" and asked.path.startswith("/dev/infiniband"):
        yield known(Inside(rdma_nodes=names_listed(row)), output.line)
    elif asked.program == "ls" and asked.path == "/dev/nvidia*" and output.has_no_file:
        if not output.stdout.strip():
            yield known(Inside(gpus=Known(0, output.line)), output.line)
    elif asked.program == "ls" and asked.path.rstrip("/") == "/sys/class/infiniband":
        # a container may show the host's names there and hold no device file; none is surely none
        is_empty = output.code == 0 and not output.text.strip() and not asked.is_cut
        if is_empty or output.has_no_file:
            yield known(Inside(rdma=Known((), output.line)), output.line or asked.path)
    elif asked.program in ("ibv_devinfo", "ibv_devices", "ibstat"):
        yield known(Inside(rdma=devices_listed(row)), output.line)
    elif asked.program == "ucx_info":
        found = tuple(dict.fromkeys(re.findall(r"(?m)^#\s+Transport: (\S+)", output.stdout)))
        yield known(Inside(ucx_transports=found), output.line)


def _short(text: str) -> str:
    """Return what `ls` would have printed in place of `ls -l`; other text stays as it is."""
    lines = text.splitlines()
    rows = [line.split()[-1] for line in lines if re.match(r"[cdl][rwx-]{9}", line)]
    is_long = rows and all(re.match(r"[cdl][rwx-]{9}|total \d", line) for line in lines)
    return "\n".join(rows) if is_long else text


def as_inside(piece: Piece) -> Piece | None:
    """Return what a reader of the host's tools told as a part of the inside; None for no part."""
    reading = piece.reading
    if piece.fact is Nvcc and isinstance(reading, Known | Absent):
        is_versioned = isinstance(reading, Absent) or bool(reading.value.version)
        return known(Inside(nvcc=reading), reading.evidence) if is_versioned else None
    if not isinstance(reading, Known):
        return None
    value = reading.value
    if isinstance(value, PythonPackages):
        return known(
            Inside(packages=value.versions, missing_packages=value.missing,
                   torch_cuda=value.torch_cuda, torch_archs=value.torch_archs),
            reading.evidence,
        )  # fmt: skip
    if isinstance(value, Compilers):
        return known(Inside(tools=value.has), reading.evidence)
    if isinstance(value, Environment):
        return known(Inside(env=value.values), reading.evidence)
    return piece if isinstance(value, CudaProof | Inside | NcclNetwork | Reduced) else None


READERS: Readers = {
    "nvidia-ctk": read_ctk,
    "nvidia-container-cli": read_cli,
}
