"""Images from folder to tag: the static gate, the build, the gate inside, the record."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from .core.event import Event, Listen, ignore
from .core.reading import Reading
from .core.rules import Finding, judge
from .edge.image_file import ImageFolder
from .edge.pip import Index, target_of
from .image.checks import ROWS, Bench


def check(
    image: ImageFolder,
    *,
    index: Index,
    flags: Mapping[str, Reading[tuple[str, ...]]] | None = None,
    listen: Listen = ignore,
) -> tuple[Finding, ...]:
    """Return what the static gate says of an image; asks the package index, builds nothing.

    `flags` maps each deployment of this image to the flags that its engine version lacks.
    """
    recipe, target = image.recipe, target_of(image.recipe)
    listen(Event("", "check", f"asking pip for {len(recipe.packages)} pins"))
    held = {
        recipe.engine.name: recipe.engine.version,
        **{pin.name: pin.version for pin in recipe.constraints},
        **(recipe.base_packages or {}),
    }
    full = [pin for pin in recipe.packages if pin.name not in recipe.no_deps]
    with ThreadPoolExecutor(max_workers=4) as pool:
        releases = {p: pool.submit(index.release, p, target) for p in recipe.packages}
        resolution = pool.submit(index.resolve, full, target, held)
        bench = Bench(
            recipe,
            {pin: answer.result() for pin, answer in releases.items()},
            resolution.result(),
            flags or {},
        )
    return judge(ROWS, bench)
