"""Facts from arbitrary commands: what the probes would have read where somebody else looked.

A command that nobody ran is unknown. A program that is missing (exit code 127, or `command -v`
that finds nothing) is absent. What no reader knows is left aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...core.facts import Facts
from ..hca import Sighting
from . import (
    containers,
    dcgm,
    driver,
    engine,
    figures,
    files,
    gpus,
    host,
    logs,
    network,
    packages,
    rdma,
    slurm,
    tools,
    units,
)
from .asked import HOST, Asked, Output, ended
from .command_line import asked
from .filters import honest
from .gpus import Levels
from .joining import facts_from
from .nodes import SIDES, node_of, node_told_of
from .piece import Piece, Readers, known
from .plainly import plain
from .wholeness import AllDevices, lists_all

__all__ = ["Asked", "Output", "asked", "facts_of", "pieces_of"]

_READERS: Readers = {
    **driver.READERS,
    **tools.READERS,
    **host.READERS,
    **files.READERS,
    **units.READERS,
    **network.READERS,
    **rdma.READERS,
    **containers.READERS,
    **engine.READERS,
    **slurm.READERS,
    **gpus.READERS,
    **dcgm.READERS,
    **packages.READERS,
    **figures.READERS,
}


def facts_of(outputs: Mapping[str, Output]) -> Facts:
    """Return the facts in what commands gave, by command line. Never raises."""
    return facts_from(pieces_of(outputs))


def pieces_of(outputs: Mapping[str, Output]) -> Iterator[Piece]:
    """Yield every piece that some reader understands, in the order of the commands.

    A line that names another machine than the one that the others are about tells nothing of it,
    unless it shows a log: that of any side of a deployment tells why the whole does not serve.
    """
    commands = {line: asked(node_of(line)[1]) for line in outputs}
    here = node_told_of({line: [c.program for c in each] for line, each in commands.items()})
    for line, output in outputs.items():
        node = node_of(line)[0]
        if node == here:
            yield from _told(commands[line], plain(output))
        else:
            there = (replace(command, place=node or command.place) for command in commands[line])
            yield from (piece for each in there for piece in logs.read_log(each, plain(output)))


def _told(commands: Iterable[Asked], output: Output) -> Iterator[Piece]:
    for command, told in (ended(each, output) for each in commands):
        pieces = () if command.hides(told) else _pieces(command, told)
        kept = tuple(honest(pieces, is_partial=command.is_partial(told)))
        yield from kept
        has_devices = any(piece.fact in (Sighting, Levels) for piece in kept)
        if has_devices and command.place == HOST and lists_all(command, told):
            yield known(AllDevices())


def _pieces(command: Asked, output: Output) -> Iterator[Piece]:
    yield from logs.read_log(command, output)
    if command.place.startswith(("container ", "image ")):
        yield from containers.look_inside(command, output)
        if command.program in _INSIDE:
            told = _INSIDE[command.program](command, output)
            yield from filter(None, map(containers.as_inside, told))
    elif command.program in _READERS and command.place in (HOST, *SIDES):
        yield from _READERS[command.program](command, output)


_INSIDE: Readers = {
    **tools.READERS,
    **figures.READERS,
    **{name: host.READERS[name] for name in ("df", "ulimit")},
}
"""Readers that know that they look into a container."""
