"""Send a stream to a host in parts: what arrived is not sent again, whatever happened between."""

from __future__ import annotations

import time
from collections.abc import Callable

from .core.errors import CommandFailed, Unreachable
from .core.remote import Remote
from .core.steps import Run, Write
from .core.words import HostPath, Word
from .edge.cargo_stream import Stream
from .edge.engine import Engine

Progress = Callable[[int, int], None]
"""Bytes that are there, bytes in all."""

REOPEN_S = 2.0
"""Seconds before a dropped line is opened again; doubled each time."""


def upload(
    remote: Remote, stream: Stream, folder: HostPath, progress: Progress, *, reopens: int = 5
) -> int:
    """Send the parts that a folder lacks, in order; return the bytes that were sent.

    A dropped line is opened again up to `reopens` times in a row; raises Unreachable after that.
    """
    there = _there(remote, folder)
    total, done, sent = stream.size, 0, 0
    for part in stream.parts():
        if part.name not in there:
            write = Write(HostPath(f"{folder}/{part.name}"), part.body, 0o600)
            _again(lambda write=write: remote.write((write,)), reopens)  # type: ignore[misc]
            sent += len(part.body)
        done += len(part.body)
        progress(done, total)
    return sent


def _there(remote: Remote, folder: HostPath) -> set[str]:
    """Return the parts of an earlier try. A part is written whole or not at all."""
    listed = remote.run(Run(("find", folder, "-name", "*.part"), 60, answers=(0, 1)))
    return {line.rpartition("/")[2] for line in listed.stdout.splitlines()}


def _again(act: Callable[[], None], reopens: int) -> None:
    for left in reversed(range(reopens + 1)):
        try:
            return act()
        except Unreachable:
            if not left:
                raise
            time.sleep(REOPEN_S * 2 ** (reopens - left))
    return None


# Fixed text: the folder and the engine's words come as arguments.
_LOAD = 'd=$1; shift; cat "$d"/*.part | "$@" load'
_LOAD_PACKED = 'd=$1; shift; cat "$d"/*.part | gzip -dc | "$@" load'


def load_parts(engine: Engine, folder: HostPath, *, packed: bool = False) -> None:
    """Have the engine take the parts, then remove them; raises CommandFailed.

    An interrupted load keeps nothing, so the parts stay until it has ended well.
    """
    text = _LOAD_PACKED if packed else _LOAD
    words: tuple[Word, ...] = ("sh", "-c", text, "sh", folder, *engine.words)
    result = engine.remote.run(Run(words, 7200))
    if result.exit != 0:
        raise CommandFailed(
            f"cannot load the image on {engine.name}: exit {result.exit}",
            ran=f"cat {folder}/*.part | {' '.join(engine.words)} load",
            exit_code=result.exit,
            said=result.tail(),
            remedy="what was sent stays there: repair the cause and run the same command again",
        )
    engine.remote.run(Run(("rm", "-rf", folder), 600))
