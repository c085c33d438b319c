"""Whether an image's base is mirrored with its compressed digests before the image is pushed.

An engine with a graph driver packs layers anew when it pushes, so that their digests differ from
those that hosts know from the base's own registry; unless the registry that it pushes to holds
them already (https://github.com/moby/moby/pull/31919).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..core.reading import Absent, Known, Reading, Unknown
from .facts import ImageFacts
from .route import human

MEDIA_TYPES = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.index.v1+json",
)
"""What a registry may be asked for: manifests of one image, and lists of those by platform."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One compressed layer: its digest and its bytes."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a registry holds under one digest: an image's layers bottom first, or `platforms`."""

    digest: str
    config: str = ""  # digest of the description: the image's ID in a classic store
    layers: tuple[Layer, ...] = ()
    platforms: Mapping[str, str] = field(default_factory=dict)  # "linux/amd64" to its digest

    @property
    def size(self) -> int:
        return sum(layer.size for layer in self.layers)


def parse_manifest(body: bytes) -> Manifest:
    """Return a manifest from its very bytes, whose sum is its digest; ValueError for garbage."""
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    document = json.loads(body)
    try:
        if "manifests" in document:
            return Manifest(digest, platforms=_platforms(document["manifests"]))
        layers = (Layer(str(one["digest"]), int(one["size"])) for one in document["layers"])
        return Manifest(digest, str(document["config"]["digest"]), tuple(layers))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no manifest: {error}") from error


def _platforms(entries: list[dict[str, Any]]) -> dict[str, str]:  # Any: JSON of a registry
    """Attestations lie beside images, under an unknown platform."""
    found = {}
    for entry in entries:
        platform = entry.get("platform") or {}
        name = f"{platform.get('os', '')}/{platform.get('architecture', '')}"
        if "unknown" not in name:
            found[name] = str(entry["digest"])
    return found


class Means(Enum):
    """What comes of a base before its image is pushed."""

    HELD = "held"  # the mirror has it
    COPY = "copy"  # by skopeo, bytes as they are
    PUSH = "push"  # by the engine, which packs layers anew


@dataclass(frozen=True, slots=True)
class Mirror:
    """What comes of the base, and why. `manifest` is the base's own, where anybody could look."""

    means: Means
    why: str
    manifest: Manifest | None = None

    def __str__(self) -> str:
        if self.means is Means.HELD:
            return f"base: {self.why}"
        if self.means is Means.COPY and self.manifest:
            return f"base: skopeo copies about {human(self.manifest.size)} first: {self.why}"
        return f"base: goes along with docker push, its layers packed anew: {self.why}"


def mirror_tag(digest: str) -> str:
    """Return the tag under which a mirror keeps a base; a list's image has the list's tag."""
    return f"base-{digest.removeprefix('sha256:')[:12]}"


def mirror(
    base: str, image: ImageFacts, own: Reading[ImageFacts], offered: Reading[Manifest]
) -> Mirror:
    """Return what comes of a base that the mirror lacks.

    `own` is the base as the building engine has it by `base`, ``NAME@sha256:…``; `offered` what
    its registry gives for it.
    """
    if "@" not in base:
        return Mirror(Means.PUSH, "image.yml holds it to no digest (bringup image.pin)")
    why = _unlike(base, image, own) or _not_offered(base, own, offered)
    if why or not isinstance(offered, Known):
        return Mirror(Means.PUSH, why)
    return Mirror(Means.COPY, "hosts that pulled it keep its layers", offered.value)


def _unlike(base: str, image: ImageFacts, own: Reading[ImageFacts]) -> str:
    """Return why the engine's push would not use a mirrored base, "" where it would."""
    match own:
        case Absent():
            return "the engine has it from an archive or a build, not by digest"
        case Unknown(why=why):
            return f"the engine does not tell how it got it: {why}"
        case Known(value=facts) if image.layers[: len(facts.layers)] != facts.layers:
            return f"the image does not lie on {base}: build it again"
        case Known(value=facts) if base.endswith(facts.id):
            return "the engine keeps compressed layers, and pushes them as they are"
    return ""


def _not_offered(base: str, own: Reading[ImageFacts], offered: Reading[Manifest]) -> str:
    match offered:
        case Absent(evidence=said):
            return said
        case Unknown(why=why):
            return why
        case Known(value=manifest) if isinstance(own, Known):
            whole = len(manifest.layers) == len(own.value.layers)
            if manifest.config != own.value.id or not whole:
                return f"its registry gives another image for {base.partition('@')[2][:19]}"
    return ""


def kept(base: Manifest | None, pushed: Manifest) -> int:
    """Return how many layers of a base an image kept to the letter: all of them, or none."""
    layers = base.layers if base is not None else ()
    return len(layers) if layers and pushed.layers[: len(layers)] == layers else 0


def estimated(image: ImageFacts, base: Reading[ImageFacts], manifest: Manifest | None) -> list[int]:
    """Return compressed bytes by layer of an image that was not pushed yet, bottom first.

    The base's are its registry's own where that is known, else half of what they take unpacked;
    all above it counts as it is.
    """
    total = len(image.layers)
    under = base.value if isinstance(base, Known) else None
    count = len(under.layers) if under and image.layers[: len(under.layers)] == under.layers else 0
    if under is None or not count:
        return [image.size // 2 // total] * total if total else []
    own = manifest.layers if manifest else ()
    low = [layer.size for layer in own] if len(own) == count else [under.size // 2 // count] * count
    above = total - count
    return low + [max(0, image.size - under.size) // above] * above if above else low
