"""Bring an image's base into the controller's registry with its own digests, before the image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.errors import CommandFailed
from ..core.event import Event
from ..core.reading import Absent, Known, Reading
from ..edge import skopeo
from ..edge.registry import Registry
from ..image.facts import ImageFacts
from ..image.mirror import Manifest, Means, Mirror, mirror, mirror_tag
from ..image.recipe import repository

if TYPE_CHECKING:
    from .ship_types import Shipping


def foresee_mirror(shipping: Shipping, local: Registry, name: str, image: ImageFacts) -> Mirror:
    """Return what comes of the base of an image that goes to a registry; copies nothing."""
    base = shipping.base
    digest = base.partition("@")[2]
    held = local.manifest(name, mirror_tag(digest)) if digest else Absent()
    if isinstance(held, Known):
        return Mirror(Means.HELD, f"{base} is mirrored here", held.value)
    own: Reading[ImageFacts] = shipping.source.image(base) if digest else Absent()
    return mirror(base, image, own, _offered(base, own))


def _offered(base: str, own: Reading[ImageFacts]) -> Reading[Manifest]:
    """Return the manifest that a base's registry gives; of a list, the engine's platform."""
    if not isinstance(own, Known):
        return Absent("nobody asked")
    found = skopeo.manifest(base)
    if not isinstance(found, Known) or not found.value.platforms:
        return found
    for digest in found.value.platforms.values():
        one = skopeo.manifest(f"{repository(base)}@{digest}")
        if not isinstance(one, Known) or one.value.config == own.value.id:
            return one
    return Absent(f"{base} is a list without the image that the engine has")


def mirror_base(shipping: Shipping, local: Registry, name: str, image: ImageFacts) -> Mirror:
    """Mirror the base of an image where that can be done; return what came of it, and why."""
    found = foresee_mirror(shipping, local, name, image)
    shipping.listen(Event(shipping.source.name, "mirror", str(found)))
    if found.means is not Means.COPY or found.manifest is None:
        return found
    source = f"{repository(shipping.base)}@{found.manifest.digest}"
    tag = mirror_tag(shipping.base.partition("@")[2])
    try:
        skopeo.copy(
            source, f"127.0.0.1:{local.port}/{name}:{tag}",
            on_line=lambda line: shipping.listen(Event(shipping.source.name, "mirror", line)),
        )  # fmt: skip
    except CommandFailed as error:
        said = error.said.splitlines()[-1:] or [""]
        found = replace(found, means=Means.PUSH, why=f"{error.message}: {said[0]}")
        shipping.listen(Event(shipping.source.name, "mirror", str(found)))
        return found
    return replace(found, means=Means.HELD, why=f"{shipping.base} is mirrored here")
