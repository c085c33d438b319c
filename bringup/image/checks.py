"""The static gate: what is known to be wrong with an image before anything is built.

Ids as in the field's list of image checks (IMG-01 to IMG-04).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..core.reading import Absent, Known, Reading, Unknown, why_not
from ..core.rules import Row, Seen, failed, passed, skipped, unknown, warned
from .pins import Displaced, Pin, Release, Resolution, displaced, nearest
from .recipe import Recipe

METADATA = "https://pypi.org/pypi/ai-dynamo/1.3.0.post1/json"


NOT_ASKED = Unknown("not asked")


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the static gate may look at. `flags` maps a deployment to flags nobody knows."""

    recipe: Recipe
    releases: Mapping[Pin, Reading[Release]]
    resolution: Reading[Resolution]
    flags: Mapping[str, Reading[tuple[str, ...]]] = field(default_factory=dict)
    tag_is: str = ""  # the digest that the base's tag stands for on the engine, where known
    tag_there: Reading[str] = NOT_ASKED  # and in the base's registry

    @property
    def held(self) -> dict[str, str]:
        """Packages of the base that must stay: the engine, and all that is recorded."""
        engine = self.recipe.engine
        return {engine.name: engine.version, **(self.recipe.base_packages or {})}


def _place(pin: Pin) -> str:
    return f"{pin.origin.file}:{pin.origin.line}: " if pin.origin.file else ""


def base_is_pinned(bench: Bench) -> Seen:
    base = bench.recipe.base
    if base.digest:
        return passed(f"{base.reference} is held to {base.digest[:19]}…")
    place = f"{base.origin.file}:{base.origin.line}"
    return warned(
        f"{place}: {base.reference} is a tag alone, and tags move",
        *_stands_for(bench),
        remedy=f"bringup image.pin {bench.recipe.name}",
    )


def _stands_for(bench: Bench) -> Iterator[str]:
    """Yield what the base's tag stands for here and in its registry."""
    if bench.tag_is:
        yield f"on the engine it stands for {bench.tag_is}"
    there = bench.tag_there
    if isinstance(there, Known):
        moved = "the tag has moved: " if bench.tag_is not in ("", there.value) else ""
        yield f"{moved}in its registry it stands for {there.value} now"
    elif not bench.tag_is:
        yield f"what it stands for is not known: {there.evidence or why_not(there)}"


def pins_exist(bench: Bench) -> Seen:
    missing, unknowns = list[str](), list[str]()
    for pin, reading in bench.releases.items():
        if isinstance(reading, Known) and not reading.value.exists:
            close = ", ".join(nearest(pin.version, reading.value.versions)) or "none"
            missing.append(
                f"{_place(pin)}{pin.name} {pin.version} does not exist (nearest: {close})"
            )
        elif isinstance(reading, Unknown):
            unknowns.append(f"{_place(pin)}{pin}: {reading.why}")
    if missing:
        return failed(*missing, remedy=_cure(bench))
    if unknowns:
        return unknown("the index did not answer for every pin", *unknowns)
    return passed(f"{len(bench.releases)} pins exist")


def base_is_kept(bench: Bench) -> Seen:
    found = [d for r in _known(bench) for d in displaced(r, bench.held)]
    lines = tuple(f"{_place(d.pin)}{_with_version(bench, d)}{d}" for d in found)
    if lines:
        return failed(*lines, remedy=_cure(bench))
    if bench.recipe.base_packages is None:
        return warned(
            f"{bench.recipe.engine.name} stays; what else the base holds is not recorded",
            remedy=f"bringup image.pin {bench.recipe.name}",
        )
    return passed(f"none of {len(bench.held)} packages of the base is replaced")


def _with_version(bench: Bench, found: Displaced) -> str:
    """Say whose metadata it is where the pinned release does not exist."""
    reading = bench.releases[found.pin]
    if isinstance(reading, Known) and not reading.value.exists:
        return f"{found.pin} (as {reading.value.nearest} says): "
    return f"{found.pin}: "


def _known(bench: Bench) -> list[Release]:
    return [r.value for r in bench.releases.values() if isinstance(r, Known)]


def _cure(bench: Bench) -> str:
    """Return the lines to write instead: an existing version, no extra, no dependencies."""
    lines = []
    for release in _known(bench):
        swaps = displaced(release, bench.held)
        if release.exists and not swaps:
            continue
        if any(swap.requirement.name == release.pin.name for swap in swaps):
            lines.append(f"take {release.pin} out: the base brings it")
            continue
        version = release.pin.version if release.exists else release.nearest
        more = f" with {release.pin.name} under no_deps, no extra" if swaps else ""
        lines.append(f"write {release.pin.name}=={version}{more}")
    return "; ".join(lines)


def pins_resolve(bench: Bench) -> Seen | None:
    if any(not release.exists for release in _known(bench)):
        return skipped("a pin does not exist, so there is no set to resolve")
    match bench.resolution:
        case Known(value=resolution):
            return passed(f"pip would install {len(resolution.installs)} packages beside no_deps")
        case Absent(evidence=said):
            return failed(*_conflict(said))
        case Unknown(why=why):
            return unknown(why)
    return None


def _conflict(said: str) -> tuple[str, ...]:
    """Return pip's own account of a conflict, without its general advice."""
    lines = [line.strip()[:300] for line in said.splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if line.startswith("The conflict is caused by")]
    advice = ("Additionally", "To fix this", "ERROR: ResolutionImpossible")
    block = lines[starts[0] :] if starts else lines[-8:]
    ends = [i for i, line in enumerate(block) if line.startswith(advice)]
    return tuple(block[: ends[0]] if ends else block)


def no_deps_are_met(bench: Bench) -> Seen:
    """Whoever comes without dependencies needs them from the base or from the list."""
    recipe = bench.recipe
    if recipe.base_packages is None:
        return skipped("what the base holds is not recorded; the gate asks pip inside the image")
    there = {*recipe.base_packages, *(pin.name for pin in recipe.packages)}
    if isinstance(bench.resolution, Known):
        there |= set(bench.resolution.value.installs)
    lines = tuple(
        f"{release.pin.name} needs {requirement.text}"
        for release in _known(bench)
        if release.pin.name in recipe.no_deps
        for requirement in release.requires
        if not requirement.extra and requirement.name not in there
    )
    return warned(*lines) if lines else passed("all plain dependencies are there")


def flags_are_known(bench: Bench) -> Seen:
    if not bench.flags:
        return skipped("no deployment uses this image")
    strange, unknowns = list[str](), list[str]()
    for name, reading in bench.flags.items():
        if isinstance(reading, Known) and reading.value:
            strange.append(f"deployment {name}: {', '.join(reading.value)}")
        elif isinstance(reading, Unknown):
            unknowns.append(f"deployment {name}: {reading.why}")
    if strange:
        return failed(*strange)
    if unknowns:
        return unknown("flags cannot be checked", *unknowns)
    return passed(f"flags of {', '.join(bench.flags)} are known")


def patches_state_their_base(bench: Bench) -> Seen:
    patches = bench.recipe.patches
    if not patches:
        return skipped("no patches")
    count = sum(len(patch.replaces) for patch in patches)
    return passed(f"{len(patches)} patches name the sums of {count} files")


ROWS: tuple[Row[Bench], ...] = (
    Row("IMG-01", "base held by digest", base_is_pinned,
        "a tag can move between two builds, and the K3 tag has",
        "https://github.com/sgl-project/sglang/issues/32541"),
    Row("IMG-01-pins", "every pin exists", pins_exist,
        "a pin that no index has ends the build after minutes; ==1.3.0 does not match 1.3.0.post1",
        METADATA),
    Row("IMG-02", "the base's packages stay", base_is_kept,
        "pip would replace the patched engine, and the patches would no longer be imported",
        METADATA),
    Row("IMG-02-resolve", "pins and base resolve together", pins_resolve,
        "pip refuses a set that contradicts itself or the base",
        "https://pip.pypa.io/en/stable/topics/dependency-resolution/",
        remedy="pin versions that agree, or name the package under no_deps"),
    Row("IMG-02-no-deps", "plain dependencies are there", no_deps_are_met,
        "a package without its dependencies fails at import, minutes into a start",
        "https://pip.pypa.io/en/stable/cli/pip_install/",
        remedy="pin the missing packages in image.yml"),
    Row("IMG-03", "patches name what they replace", patches_state_their_base,
        "a patch for another base overwrites what it never saw",
        "docs/images.md"),
    Row("IMG-04", "flags are known to the engine", flags_are_known,
        "an unknown flag ends the worker with exit 2 after the start",
        "https://github.com/sgl-project/sglang/tree/main/python/sglang/srt",
        remedy="take the flag out of the deployment, or use an engine version that knows it"),
)  # fmt: skip
