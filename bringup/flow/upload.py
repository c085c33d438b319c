"""Send a stream to a host in parts: what arrived is not sent again, whatever happened between."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TypeVar

from ..core.errors import CommandFailed, Unreachable
from ..core.remote import Remote
from ..core.steps import Run, Write
from ..core.words import HostPath, Word
from ..edge.cargo_stream import Stream
from ..edge.engine import Engine
from .claim import Claim

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Bytes that are there, bytes in all."""

REOPEN_S = 2.0
"""Seconds before a dropped line is opened again; doubled each time."""


def upload(
    remote: Remote,
    stream: Stream,
    folder: HostPath,
    there: Collection[str],
    progress: Progress,
    *,
    reopens: int = 5,
    claim: Claim | None = None,
) -> int:
    """Send the parts that are not there yet, in order; return the bytes that were sent.

    A part is written whole or not at all. A dropped line is opened again up to `reopens` times
    in a row, and the host's lock with it; raises Unreachable after that.
    """
    own = claim or Claim(remote, "")
    total, sent, taken = stream.size, 0, -1
    while taken != own.times:  # parts were anybody's while the lock was lost
        there = staged(remote, folder) if taken >= 0 else there
        taken, done = own.times, 0
        for part in stream.parts():
            if part.name not in there:
                write = Write(HostPath(f"{folder}/{part.name}"), part.body, 0o600)
                again(partial(remote.write, (write,)), reopens, own.renew)
                sent += len(part.body)
            done += len(part.body)
            progress(done, total)
    return sent


_STAGED = 'cd "$1" 2>/dev/null || exit 0; touch . && ls'


def staged(remote: Remote, folder: HostPath) -> frozenset[str]:
    """Return the parts that lie in a folder of the stage, which is then in use as of now."""
    said = remote.run(Run(("sh", "-c", _STAGED, "sh", folder))).stdout
    return frozenset(name for name in said.splitlines() if name.endswith(".part"))


def again(act: Callable[[], T], reopens: int, renew: Callable[[], None] = lambda: None) -> T:
    """Do something that may be done twice, anew after each dropped line; raises the last one.

    `renew` takes anew what went with the line, before each further try.
    """
    for tried in range(reopens):
        try:
            if tried:
                renew()
            return act()
        except Unreachable:
            time.sleep(REOPEN_S * 2**tried)
    if reopens:
        renew()
    return act()


# Fixed text, one trip: take the parts, give the old image a name of its own, move the name, tell
# the ID that it now stands for. Values come as arguments, "-" for none.
_FINISH = r"""
d=$1 from=$2 id=$3 kept=$4 ref=$5 old=$6 old_kept=$7 keep=$8; shift 8
case $from in
parts) cat "$d"/*.part | "$@" load ;;
gzip | zstd) cat "$d"/*.part | "$from" -dc | "$@" load ;;
here) "$@" load ;;
esac >/dev/null || exit 91
[ "$kept" = - ] || "$@" tag "$id" "$kept" || exit 92
[ "$old" = - ] || "$@" tag "$old" "$old_kept" || exit 93
"$@" tag "$id" "$ref" || exit 92
"$@" image inspect --format "{{.Id}}" "$ref" || exit 92
[ "$keep" = yes ] || rm -rf "$d"
"""
_WHY = {
    91: "cannot load what was sent",
    92: "cannot find the image under its ID after it was sent",
    93: "cannot keep a name for the old image",
}


class Source(Enum):
    """Where the engine of a host takes an image from."""

    NOTHING = "nothing"  # it has it
    PARTS = "parts"
    GZIP = "gzip"  # parts of a compressed stream
    ZSTD = "zstd"
    HERE = "here"  # it comes along with the command


@dataclass(frozen=True, slots=True)
class Finish:
    """What is left to do on a host once the bytes are there. "-" stands for none."""

    folder: HostPath
    identity: str
    reference: str
    source: Source = Source.NOTHING
    kept: str = "-"
    old: str = "-"
    old_kept: str = "-"
    keep_parts: bool = False  # other hosts will fetch them
    body: bytes = field(default=b"", repr=False)  # for Source.HERE


def finish(
    engine: Engine, what: Finish, *, reopens: int = 5, renew: Callable[[], None] = lambda: None
) -> str:
    """Load, compare and name in one trip; return the ID that the name now stands for.

    An interrupted load keeps nothing, so the parts stay until all has ended well. Raises
    CommandFailed; the old image keeps its name then.
    """
    words: tuple[Word, ...] = (
        "sh", "-c", _FINISH, "sh", what.folder, what.source.value, what.identity, what.kept,
        what.reference, what.old, what.old_kept, "yes" if what.keep_parts else "no",
        *engine.words,
    )  # fmt: skip
    result = again(partial(engine.remote.run, Run(words, 7200, input=what.body)), reopens, renew)
    if result.exit != 0:
        raise CommandFailed(
            f"{_WHY.get(result.exit, 'cannot name the image')} on {engine.name}",
            ran=f"cat {what.folder}/*.part | {' '.join(engine.words)} load",
            exit_code=result.exit,
            said=result.tail(),
            remedy="what was sent stays there: repair the cause and run the same command again",
        )
    return result.stdout.strip().splitlines()[-1]
