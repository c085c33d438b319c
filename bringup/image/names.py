"""Names that images keep on hosts, and what may be done with them: back to one, rid of others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .facts import ImageFacts

_ID = re.compile(r"-([0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An image under the name that it keeps. `is_current`: the plain name stands for it too."""

    name: str
    image: ImageFacts
    is_current: bool


def kept_images(images: Iterable[ImageFacts], reference: str) -> tuple[KeptImage, ...]:
    """Return the images that keep a name of this reference, newest first by their creation.

    Only names made of the reference and the image's own ID count: nobody else's are touched. In
    containerd's store, whose IDs are manifests' digests, the ID is the one that the builder saw.
    """
    found = [
        KeptImage(tag, image, reference in image.tags)
        for image in images
        for tag in image.tags
        if tag.startswith(f"{reference}-")
        and (match := _ID.fullmatch(tag.removeprefix(reference)))
        and (match[1] == image.short or image.identity.is_manifest)
    ]
    return tuple(sorted(found, key=lambda kept: (kept.image.created, kept.name), reverse=True))


def previous(kept: Iterable[KeptImage], *, to: str = "") -> KeptImage | None:
    """Return the image to go back to: the one whose ID starts so, else the one before."""
    images = tuple(kept)
    if to:
        plain = to.removeprefix("sha256:")
        fitting = [k for k in images if k.image.id.removeprefix("sha256:").startswith(plain)]
        return fitting[0] if len({k.image.id for k in fitting}) == 1 else None
    current = next((i for i, k in enumerate(images) if k.is_current), -1)
    older = [k for k in images[current + 1 :] if not k.is_current]
    return older[0] if older else None


def to_remove(kept: Iterable[KeptImage], *, keep: int) -> tuple[KeptImage, ...]:
    """Return what a prune takes away: all but the current image and the `keep` newest others."""
    others = [k for k in kept if not k.is_current]
    return tuple(others[keep:])
