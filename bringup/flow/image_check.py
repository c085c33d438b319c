"""The static gate: what pip, the engine and the inventory say of an image before any build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from ..core.errors import Blocked
from ..core.event import Event, Listen, ignore
from ..core.reading import Known, Reading
from ..core.rules import Finding, Level, judge
from ..edge import skopeo
from ..edge.engine import Engine
from ..edge.image_file import ImageFolder
from ..edge.pip import Index, target_of
from ..edge.pool import side_by_side
from ..image.checks import NOT_ASKED, ROWS, Bench
from ..image.pins import Pin, Release, Resolution
from ..image.recipe import Base, same_repository

Flags = Mapping[str, Reading[tuple[str, ...]]]
"""Each deployment of an image, with the flags that its engine version lacks."""

TAG_S = 15
"""Most seconds for what a tag stands for: a warning is given either way."""


def check(
    image: ImageFolder,
    *,
    index: Index,
    flags: Flags | None = None,
    engine: Engine | None = None,
    listen: Listen = ignore,
) -> tuple[Finding, ...]:
    """Return what the static gate says of an image; builds nothing.

    Asks the package index, and the registry of a base that is held to no digest.

    `flags` maps each deployment of this image to the flags that its engine version lacks. An
    `engine` tells what digest an unpinned base stands for.
    """
    recipe, target = image.recipe, target_of(image.recipe)
    listen(Event("controller", "check", f"asking pip for {len(recipe.packages)} pins"))
    held = {
        recipe.engine.name: recipe.engine.version,
        **{pin.name: pin.version for pin in recipe.constraints},
        **(recipe.base_packages or {}),
    }
    full = [pin for pin in recipe.packages if pin.name not in recipe.no_deps]
    releases, resolution, there = _asked(
        recipe.packages,
        lambda pin: index.release(pin, target),
        lambda: index.resolve(full, target, held),
        lambda: _in_registry(recipe.base),
    )
    digest = digest_of_tag(engine, recipe.base.reference) if engine else ""
    return judge(ROWS, Bench(recipe, releases, resolution, flags or {}, digest, there))


def _in_registry(base: Base) -> Reading[str]:
    """Return the digest that a base's tag stands for in its registry, where the tag decides."""
    if base.digest:
        return NOT_ASKED
    found = skopeo.manifest(base.reference, seconds=TAG_S)
    return Known(found.value.digest) if isinstance(found, Known) else found


def _asked(
    pins: Iterable[Pin],
    release: Callable[[Pin], Reading[Release]],
    resolve: Callable[[], Reading[Resolution]],
    tag: Callable[[], Reading[str]],
) -> tuple[dict[Pin, Reading[Release]], Reading[Resolution], Reading[str]]:
    """Ask for every release, the resolution and the base's tag, four at a time."""
    every = tuple(pins)
    releases: dict[Pin, Reading[Release]] = {}
    resolution: list[Reading[Resolution]] = []
    there: list[Reading[str]] = []

    def keep(pin: Pin) -> None:
        releases[pin] = release(pin)

    asks: tuple[Callable[[], None], ...] = (
        lambda: resolution.append(resolve()),
        lambda: there.append(tag()),
        *(partial(keep, pin) for pin in every),
    )
    side_by_side(asks, lambda ask: ask(), limit=4)
    return {pin: releases[pin] for pin in every}, resolution[0], there[0]


def digest_of_tag(engine: Engine, reference: str) -> str:
    """Return the digest that a tag stands for on an engine, "" where it has none or no answer."""
    facts = engine.image(reference)
    if not isinstance(facts, Known):
        return ""
    own = [d for d in facts.value.digests if same_repository(d, reference)]
    return own[0].rpartition("@")[2] if own else ""


def refuse(name: str, findings: tuple[Finding, ...]) -> None:
    """Raise Blocked with every finding that forbids a build, and its cure."""
    blocks = [finding for finding in findings if finding.level is Level.BLOCK]
    if not blocks:
        return
    lines = [f"{finding.id} {line}" for finding in blocks for line in finding.evidence]
    cures = dict.fromkeys(finding.remedy for finding in blocks if finding.remedy)
    raise Blocked(
        f"cannot build {name}: {len(blocks)} findings of the static gate forbid it",
        said="\n".join(lines),
        remedy="; ".join(cures),
    )


def told(findings: tuple[Finding, ...]) -> tuple[dict[str, str], ...]:
    """Return the findings that are more than fine, as a record keeps them."""
    return tuple(
        {"id": f.id, "level": f.level.value, "evidence": "; ".join(f.evidence)}
        for f in findings
        if f.level is not Level.OK
    )
