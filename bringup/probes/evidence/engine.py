"""What docker and podman told of themselves: info, version, ps, and how they refuse GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.reading import Known
from ..container import DOWN, ContainerEngine, read_info
from ..containers import Container, Containers
from ..inside import Inside
from ..stored_image import StoredImage
from . import containers, figures
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known, unknown


def read_engine(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker info|version|ps|inspect|run|exec`."""
    verb = next(iter(asked.operands), "")
    if output.is_missing and asked.program in output.line:
        yield absent(ContainerEngine, output.line)
    elif verb == "info":
        yield from _info(asked, output)
    elif re.search(DOWN, output.text) or _is_closed(output):
        yield unknown(ContainerEngine, _complaint(output), output.line)
    elif verb in ("inspect", "container"):
        yield from containers.read_inspect(asked, output)
    elif verb in ("image", "images"):
        yield from _image(asked, output)
    elif verb == "ps" and output.code == 0:
        yield from _listed(asked, output)
    elif verb == "version" or asked.has("--version", "-v"):
        yield from _version(asked, output)
    elif verb == "run" and output.code != 0:
        yield from _refused(output)
    elif verb == "exec" and "is not running" in output.text:
        yield absent(Inside, output.line)


def _is_closed(output: Output) -> bool:
    return bool(re.search(r"permission denied.*docker\.sock", output.text))


def _complaint(output: Output) -> str:
    lines = [x.strip() for x in output.text.splitlines()]
    return next((x for x in lines if re.search(rf"{DOWN}|denied", x)), output.line)


def _info(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker info` or `podman info`: as text, as JSON, or only what a format names."""
    form = asked.after("--format", "-f")
    if field := re.fullmatch(r"\{\{\s*(json\s+)?\.(\w+)\s*\}\}", form):
        yield from _field(field[2], output)
    elif asked.pattern:
        yield from _some_info(output)
    else:
        yield Piece(ContainerEngine, read_info(output.text))


FIELDS = ("ServerVersion", "DockerRootDir", "CgroupDriver", "CgroupVersion", "LoggingDriver")
"""Fields of `docker info` that are one word."""


def _field(name: str, output: Output) -> Iterator[Piece]:
    """Read one field of `docker info`: a word, or JSON of the runtimes by name."""
    word = output.stdout.strip().strip('"')
    if output.code != 0 or not word:
        why = _complaint(output)
        yield unknown(ContainerEngine, why or "docker info did not answer", output.line)
    elif name in FIELDS:
        version, root, driver, group, log = (word if name == each else "" for each in FIELDS)
        engine = ContainerEngine("docker", version, (), (), root, driver, group, log)
        yield known(engine, output.line)
    elif name == "Runtimes":
        names = re.findall(r'(?:"|map\[|\} ?|\b)([\w.-]+)"?:\s*\{', output.stdout)
        yield known(ContainerEngine("docker", "", tuple(sorted(set(names)))), " ".join(names))


def _some_info(output: Output) -> Iterator[Piece]:
    """Lines of `docker info` that came through grep name no version, and hold all the same."""

    def value(label: str) -> str:
        found = re.search(rf"(?m)^\s*{label}:[ \t]*(\S.*)$", output.stdout)
        return found[1].strip() if found else ""

    engine = ContainerEngine(
        "docker",
        value("Server Version"),
        tuple(value("Runtimes").split()),
        tuple(re.findall(r"(?m)^\s+cdi:\s*(\S+)", output.stdout)),
        value("Docker Root Dir"),
        value("Cgroup Driver"),
        value("Cgroup Version"),
    )
    if engine != ContainerEngine("docker", ""):
        yield known(engine, output.line)


def _image(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker image inspect NAME`: only that it is not there."""
    if asked.has("inspect") and re.search(r"(?i)no such image", output.text):
        yield absent(StoredImage, output.line)


def _version(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker version`, `docker --version`, `podman version`, `podman --version`."""
    client = re.search(r"(?m)^(?:(?:Docker|podman) version )?(\d+\.\d+\.\d+)", output.stdout)
    server = re.search(r"(?ms)^Server:.*?Version:\s+(\d\S*)", output.stdout)
    whole = re.search(r"(?m)^Version:\s+(\d+\.\d+\S*)", output.stdout)
    if found := server or client or whole:
        yield known(ContainerEngine(asked.program, found[1]), f"{asked.program} {found[1]}")


def _listed(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker ps`: names and images, in its table or as asked by --format."""
    if asked.has("--format", "-q", "-aq") or not output.stdout.startswith("CONTAINER ID"):
        return
    head, *rows = output.stdout.splitlines()
    starts = {name: head.find(name) for name in ("IMAGE", "COMMAND", "STATUS", "NAMES")}
    if -1 in starts.values():
        return
    found = [
        Container(
            row[starts["NAMES"] :].strip(),
            row[starts["IMAGE"] : starts["COMMAND"]].strip(),
            state="running" if row[starts["STATUS"] :].startswith("Up") else "exited",
            ports=tuple(sorted({int(port) for port in re.findall(r":(\d+)->", row)})),
        )
        for row in rows
        if len(row) > starts["NAMES"]
    ]
    yield known(Containers(tuple(found)), ", ".join(c.name for c in found) or "no containers")


def _refused(output: Output) -> Iterator[Piece]:
    for pattern in containers.REFUSALS:
        if found := re.search(pattern, output.text):
            yield known(Inside(gpus=Known(0, found[0])), found[0])
            return


def read_logs(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `docker logs NAME`: what NCCL says of its network."""
    if next(iter(asked.operands), "") == "logs":
        yield from figures.read_nccl_log(asked, output)


READERS: Readers = dict.fromkeys(("docker", "podman"), figures.both(read_engine, read_logs))
