"""Images that are on hosts already: compare them, go back to one, remove old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from ..core.errors import Blocked, ToolError, VerifyFailed
from ..core.event import Event, Listen, ignore
from ..core.reading import Known, Reading, Unknown
from ..core.steps import Run
from ..core.words import HostPath
from ..edge.engine import Engine
from ..edge.pool import side_by_side
from ..image.facts import ImageFacts, differing
from ..image.names import KeptImage, kept_images, previous, to_remove

T = TypeVar("T")

FRESH_MINUTES = 60
"""Parts that a shipment left behind wait so long for the run that goes on where it stopped."""

# Fixed text. What cannot be dated stays.
_CLEAR = r"""
for one in "$1"/*/; do
  [ -d "$one" ] || continue
  fresh=$(find "$one" -mmin "-$2" -print) || fresh=unknown
  if [ -n "$fresh" ]; then echo "${one%/}"; else rm -rf "$one"; fi
done
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """How one host came out of a rollback or a prune."""

    host: str
    identity: str = ""
    was: str = ""
    names: tuple[str, ...] = ()  # names taken away, or the one that was gone back to
    error: ToolError | None = None


def on_each(
    engines: Mapping[str, Engine], act: Callable[[Engine], T], *, limit: int = 16
) -> dict[str, T | ToolError]:
    """Do something on every host side by side; one host's error is its own."""

    def guarded(host: str) -> T | ToolError:
        engine = engines[host]
        try:
            return act(engine)
        except ToolError as error:
            return error.at(host=engine.name)

    return side_by_side(engines, guarded, limit=max(1, limit))


def identities(engines: Mapping[str, Engine], reference: str) -> dict[str, Reading[str]]:
    """Return what image each host holds under a name."""
    found = on_each(engines, lambda engine: engine.image(reference))
    return {host: _identity(reading) for host, reading in found.items()}


def _identity(reading: Reading[ImageFacts] | ToolError) -> Reading[str]:
    if isinstance(reading, ToolError):
        return Unknown(reading.message)
    return Known(reading.value.id, reading.evidence) if isinstance(reading, Known) else reading


def refuse_differing(engines: Mapping[str, Engine], reference: str) -> str:
    """Return the ID that all hosts hold; raises Blocked when they differ or one is unknown.

    For pairs: prefill and decode must run one and the same image.
    """
    found = identities(engines, reference)
    if why := differing(found):
        raise Blocked(
            f"cannot start workers on different images of {reference}: {why}",
            remedy=f"bringup image.ship {reference.partition(':')[0]}",
        )
    return next((r.value for r in found.values() if isinstance(r, Known)), "")


def rollback(
    engines: Mapping[str, Engine],
    reference: str,
    *,
    to: str = "",
    check: bool = False,
    operator: str = "bringup",
    listen: Listen = ignore,
) -> tuple[Kept, ...]:
    """Let a name stand for an earlier image again: the one before, or the one whose ID is given."""

    def act(engine: Engine) -> Kept:
        with _alone(engine, f"{operator} lets {reference} go back", check=check):
            images = engine.images()
            kept = kept_images(images, reference)
            target = previous(kept, to=to)
            if target is None:
                raise _none_kept(engine, reference, to, kept)
            was = next((image.id for image in images if reference in image.tags), "")
            if not check:
                listen(Event(engine.name, "rollback", f"{reference} → {target.image.short}"))
                _move(engine, target.image.id, reference)
            return Kept(engine.name, target.image.id, was, (target.name,))

    return _settle(on_each(engines, act))


def _alone(engine: Engine, doing: str, *, check: bool) -> AbstractContextManager[None]:
    """Hold the host's lock, unless nothing will be changed."""
    return nullcontext() if check else engine.remote.lock(doing)


def _none_kept(engine: Engine, reference: str, to: str, kept: Iterable[KeptImage]) -> Blocked:
    there = ", ".join(k.name for k in kept) or "none"
    return Blocked(
        f"cannot go back on {engine.name}: it keeps no"
        f" {f'image {to}' if to else 'earlier image'} of {reference} (it keeps: {there})",
        remedy=f"bringup image.history {reference.partition(':')[0]}, then image.ship",
    )


def _move(engine: Engine, identity: str, reference: str) -> None:
    engine.tag(identity, reference)
    found = engine.image(reference)
    if not isinstance(found, Known) or found.value.id != identity:
        raise VerifyFailed(f"cannot move {reference} on {engine.name}: it stands for another image")


def prune(
    engines: Mapping[str, Engine],
    reference: str,
    *,
    keep: int = 1,
    stage: str = "",
    check: bool = False,
    operator: str = "bringup",
    listen: Listen = ignore,
) -> tuple[Kept, ...]:
    """Remove old images of one name: never the current one, never anybody else's.

    `keep` earlier ones stay for a rollback. Parts of unfinished shipments below `stage` go too:
    a shipment at work holds the host's lock, which is LockHeld here, and fresh parts are left to
    the run that goes on with them.
    A container that runs an old image keeps its layers; only the name goes.
    """

    def act(engine: Engine) -> Kept:
        with _alone(engine, f"{operator} removes old images of {reference}", check=check):
            kept = kept_images(engine.images(), reference)
            names = tuple(k.name for k in to_remove(kept, keep=keep))
            current = next((k.image.id for k in kept if k.is_current), "")
            for name in () if check else names:
                listen(Event(engine.name, "prune", name))
                engine.do("image", "rm", name, why=f"cannot remove {name}")
            for left in _clear(engine, stage) if stage and not check else ():
                text = f"{left} stays: touched in the last {FRESH_MINUTES} minutes"
                listen(Event(engine.name, "prune", text))
            return Kept(engine.name, current, "", names)

    return _settle(on_each(engines, act))


def _clear(engine: Engine, stage: str) -> tuple[str, ...]:
    """Remove old parts from a host's stage; return the folders that stay, being fresh."""
    words = ("sh", "-c", _CLEAR, "sh", HostPath(stage), str(FRESH_MINUTES))
    return tuple(engine.remote.run(Run(words, 600)).stdout.splitlines())


def _settle(found: Mapping[str, Kept | ToolError]) -> tuple[Kept, ...]:
    return tuple(
        Kept(host, error=one) if isinstance(one, ToolError) else one
        for host, one in sorted(found.items())
    )
