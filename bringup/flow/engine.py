"""Ask images what their engines accept, and keep the answers beside the facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..core.errors import CommandFailed, UsageError
from ..core.event import Event
from ..core.host import Image
from ..core.script import Answer, compose, seconds_for, split
from ..edge.engine import Engine
from ..edge.store import write_atomic
from ..engines.inspection import HELP, Inspected, asks, file_name, read
from ..engines.schema import Schema, dump, parse
from .image_gate import has_gpus
from .types import Tools


def inspect(
    tools: Tools, engine: Engine, image: str, packages: tuple[str, ...], *, cdi: bool = False
) -> tuple[Inspected, ...]:
    """Return what an image on a host says of its engines, and keep it for later checks.

    Raises UsageError for an unknown package, CommandFailed when the container does not start.
    """
    for package in packages:
        if package not in HELP:
            raise UsageError(f"cannot ask for {package!r}; there is {', '.join(HELP)}")
    found = read(_ask(tools, engine, image, packages, cdi=cdi), packages, image=image)
    for one in found:
        if one.schema:
            write_atomic(_folder(tools) / file_name(image, one.package), dump(one.schema).encode())
    return found


def _ask(
    tools: Tools, engine: Engine, image: str, packages: tuple[str, ...], *, cdi: bool
) -> Answer:
    way = ("--device", "nvidia.com/gpu=all") if cdi else ("--gpus", "all")
    gpus = way if has_gpus(engine) else ()
    questions, nonce = asks(packages), tools.nonce()
    tools.listen(Event(engine.name, "inspect", f"{image}: imports the engine, minutes if cold"))
    result = engine.run(
        "run", "--rm", "--network", "none", *gpus, "--entrypoint", "sh", image,
        "-c", compose(questions, nonce=nonce), seconds=seconds_for(questions),
    )  # fmt: skip
    answer = split(result.stdout, nonce=nonce)
    if not answer.sections:
        raise CommandFailed(
            f"cannot start a container of {image}: exit {result.exit}", host=engine.name,
            ran=f"docker run --rm {image}", exit_code=result.exit, said=result.tail(),
            remedy=_remedy(result.tail(), image),
        )  # fmt: skip
    return answer


def _remedy(said: str, image: str) -> str:
    """Tell an image that is not there from an engine that cannot start a container of it."""
    if re.search("(?i)no such image|unable to find image|pull access denied", said):
        return f"bring {image} there first: bringup image.ship NAME --host HOST, or pull it"
    return f"see why: docker run --rm --network none {image} true"


def _folder(tools: Tools) -> Path:
    return tools.store.folder / "engines"


def answered(tools: Tools, image: Image) -> tuple[Schema, ...]:
    """Return what an image answered earlier, under the name that its deployment uses."""
    names = (file_name(image.reference, package) for package in HELP if image.reference)
    return tuple(_kept(_folder(tools) / name for name in names))


def _kept(paths: Iterable[Path]) -> Iterator[Schema]:
    for path in paths:
        if path.is_file():
            try:
                yield parse(path.read_text())
            except (ValueError, KeyError) as error:
                raise UsageError(
                    f"cannot read {path}: {error}", remedy="remove it and ask the image again"
                ) from error
