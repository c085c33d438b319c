"""By which way an image gets to a host, and how many bytes that takes: decided before any is sent.

Facts behind the choice: engines find layers they have by diff ID in an archive, but by compressed
digest in a pull; so a host whose base came by `docker load` pulls all of it again
(https://github.com/moby/moby/pull/31919).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.sameness import same_image
from .facts import ImageFacts, common_bottom

STREAMED = 2 * 1024**3
"""From here on a whole image is pulled, which needs no room for a staged copy."""

SPARE = 512 * 1024**2
"""Bytes that stay free on a host beyond what an image needs."""


NO_ANSWER = "its engine does not answer"


def cure(trouble: str, *, host: str, name: str) -> str:
    """Return what to do about a host that cannot take an image."""
    if "permission denied" in trouble.lower():
        return f"let its login use docker: usermod -aG docker LOGIN, or sudo: true for {host}"
    if "staging folder" in trouble:
        return f"free space there, or ship with --way pull, which stages nothing: --host {host}"
    if "free" in trouble:
        return f"bringup image.prune {name} --host {host}"
    if NO_ANSWER in trouble or "no engine" in trouble:
        return f"bringup provision --host {host} --fix --fix-level service"
    return f"bringup probe --host {host}"


class Way(Enum):
    """How an image travels. Nothing travels for SAME and NAMED."""

    SAME = "same"  # the name stands for this very image
    NAMED = "named"  # the image is there, under another name
    LAYERS = "layers"  # the missing layers alone, in an archive that resumes
    PULL = "pull"  # docker pull from the controller's registry, through a tunnel
    ARCHIVE = "archive"  # docker save, compressed: where there is no registry
    REGISTRY = "registry"  # docker pull from the registry that the inventory names


@dataclass(frozen=True, slots=True)
class Cargo:
    """The image to carry. `sizes` are compressed bytes per layer, bottom first.

    The lowest `base_layers` have the digests of the base that its registry gives as `base_digest`.
    """

    facts: ImageFacts
    reference: str  # the name that hosts run
    kept: str  # the name that stays with this image
    sizes: tuple[int, ...] = ()
    base_digest: str = ""
    base_layers: int = 0
    config: str = ""  # digest of its description: its ID in a classic store

    @property
    def classic_id(self) -> str:
        return self.config or self.facts.id

    def is_image(self, other: ImageFacts) -> bool:
        """Return whether an image of any engine is surely this one."""
        known = (self.facts.id, self.classic_id)
        return other.id in known or same_image(self.facts.identity, other.identity) is True

    def known_to(self, images: Iterable[ImageFacts]) -> int:
        """Return how many layers from the bottom a pull leaves out: a base pulled by digest."""
        pulled = {name.rpartition("@")[2] for image in images for name in image.digests}
        return self.base_layers if self.base_digest and self.base_digest in pulled else 0

    def rest(self, present: int) -> int:
        """Return the compressed bytes of the layers above the first `present` ones."""
        return sum(self.sizes[present:])


@dataclass(frozen=True, slots=True)
class HostImages:
    """What a host's engine holds. `free`: bytes where the engine stores, `room`: where we stage."""

    images: Reading[tuple[ImageFacts, ...]]
    free: Reading[int]
    room: Reading[int]
    staged: Mapping[str, frozenset[str]]  # folder to the parts of an earlier try
    is_docker: bool = True
    zstd: bool = False
    is_containerd: bool = False  # docker with containerd's image store

    @property
    def whole_only(self) -> str:
        """Why its engine takes no archive without the layers it has, "" where it does."""
        if not self.is_docker:
            return "podman loads whole archives only"
        return "containerd's image store loads whole archives only" if self.is_containerd else ""


@dataclass(frozen=True, slots=True)
class Route:
    """How one host gets the image. `sends` is an estimate in bytes, `why` says what decided."""

    host: str
    way: Way
    holder: str = ""  # ID under which it is there already
    present: int = 0  # layers from the bottom that are there
    known: int = 0  # those of them that a pull finds: by compressed digest
    sends: int = 0
    needs: int = 0  # bytes of disk for the engine
    stages: int = 0  # bytes of disk for parts, until the engine has taken them
    why: str = ""
    trouble: str = ""  # why it cannot be done

    def __str__(self) -> str:
        if self.trouble:
            return f"{self.host}: cannot: {self.trouble}"
        cost = f", about {human(self.sends)}" if self.sends else ""
        return f"{self.host}: {self.way.value}{cost}: {self.why}"


def human(count: float) -> str:
    """Return bytes for people: ``78 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def route(
    host: str,
    cargo: Cargo,
    there: HostImages,
    *,
    tunnels: bool,
    own_registry: bool = False,
    forced: Way | None = None,
) -> Route:
    """Return by which way a host gets an image; `trouble` where it cannot get it at all."""
    match there.images:
        case Unknown(why=why, evidence=said):
            told = (
                said[:120] if why.lower() in said.lower() else f"{why}: {said[:120]}".rstrip(": ")
            )
            return Route(host, forced or Way.LAYERS, trouble=f"{NO_ANSWER}: {told}")
        case Absent(evidence=evidence):
            return Route(host, forced or Way.LAYERS, trouble=f"it has no engine: {evidence}")
        case Known(value=images):
            pass
    holder = next((image for image in images if cargo.is_image(image)), None)
    if holder is not None:
        return _there(host, cargo, holder)
    present = common_bottom(cargo.facts.layers, (image.layers for image in images))
    way, why = _choose(cargo, there, present, tunnels=tunnels, own_registry=own_registry)
    if forced is not None:
        way, why = forced, "asked for"
    found = Route(host, way, "", present, cargo.known_to(images), why=why)
    if way is Way.LAYERS and there.whole_only:
        return replace(found, trouble=f"{there.whole_only}: take --way pull or archive")
    return _with_room(_sized(_explained(found, cargo), cargo), there)


def _there(host: str, cargo: Cargo, holder: ImageFacts) -> Route:
    if cargo.reference in holder.tags and cargo.kept in holder.tags:
        return Route(host, Way.SAME, holder.id, why=f"{holder.short} is already there")
    return Route(host, Way.NAMED, holder.id, why=f"{holder.short} is there under another name")


def _choose(
    cargo: Cargo, there: HostImages, present: int, *, tunnels: bool, own_registry: bool
) -> tuple[Way, str]:
    total = len(cargo.facts.layers)
    if own_registry:
        return Way.REGISTRY, "the inventory names a registry"
    if not cargo.sizes:
        return Way.ARCHIVE, "the controller has no registry"
    if there.whole_only:
        return Way.ARCHIVE if not tunnels else Way.PULL, there.whole_only
    if present == 0 and cargo.rest(0) >= STREAMED and tunnels:
        return Way.PULL, f"none of {total} layers is there, and a pull streams them"
    return Way.LAYERS, f"{present} of {total} layers are there"


PULLS = (Way.PULL, Way.REGISTRY)


def _explained(way: Route, cargo: Cargo) -> Route:
    """Say of a pull what it leaves out, and of layers that it cannot see that it does not."""
    if way.way not in PULLS or not way.present:
        return way
    if way.known:
        why = f"{way.known} of {len(cargo.facts.layers)} layers are there by the base's own digest"
    else:
        why = f"{way.present} layers are there, but a pull may not know them"
    return replace(way, why=f"{way.why}; {why}")


def _sized(way: Route, cargo: Cargo) -> Route:
    """Fill in what a way sends and what it takes on the host's disk."""
    total = cargo.rest(0) or cargo.facts.size // 2
    missing = cargo.rest(way.present) if cargo.sizes else total
    if way.way is Way.ARCHIVE:
        sends = total
    elif way.way in PULLS:
        sends = cargo.rest(way.known) if cargo.sizes else total
    else:
        sends = missing
    return replace(
        way,
        sends=sends,
        needs=int(cargo.facts.size * missing / total) if total else 0,
        stages=sends if way.way in (Way.LAYERS, Way.ARCHIVE) else 0,
    )


def _with_room(way: Route, there: HostImages) -> Route:
    """Refuse where a disk is known to be too small; what cannot be known is said."""
    for what, has, needs in (
        ("its engine", there.free, way.needs),
        ("its staging folder", there.room, way.stages),
    ):
        if isinstance(has, Known) and has.value < needs + SPARE:
            trouble = f"{what} has {human(has.value)} free, {human(needs + SPARE)} are needed"
            return replace(way, trouble=trouble)
        if isinstance(has, Unknown):
            way = replace(way, why=f"{way.why}; free space of {what} unknown: {has.why}")
    return way
