"""What a container engine says of images, read from its JSON; and which layers a host lacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.sameness import Identity
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """One image of an engine. `layers` are diff IDs from the bottom up, `size` is in bytes."""

    id: str
    layers: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    created: str = ""

    @property
    def identity(self) -> Identity:
        return Identity(self.id, self.digests, self.layers, self.labels)

    @property
    def short(self) -> str:
        """The first 12 digits of the ID, as engines show it."""
        return self.id.removeprefix("sha256:")[:12]


def parse_images(text: str) -> tuple[ImageFacts, ...]:
    """Return the images in the output of ``image inspect``; raises ValueError for garbage."""
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("no list of images")  # noqa: TRY004 - it is the text that is wrong
    try:
        return tuple(_image(item) for item in found)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no list of images: {error}") from error


def _image(item: Mapping[str, Any]) -> ImageFacts:
    config = item.get("Config") or {}
    return ImageFacts(
        id=_full(item["Id"]),
        layers=tuple((item.get("RootFS") or {}).get("Layers") or ()),
        labels={str(k): str(v) for k, v in (config.get("Labels") or {}).items()},
        size=int(item.get("Size") or 0),
        tags=tuple(sorted(_plain(tag) for tag in item.get("RepoTags") or ())),
        digests=tuple(sorted(item.get("RepoDigests") or ())),
        created=str(item.get("Created") or ""),
    )


def _plain(tag: str) -> str:
    """Podman writes localhost/ before names without a registry."""
    return tag.removeprefix("localhost/")


def _full(identity: str) -> str:
    """Podman leaves the algorithm out."""
    return identity if identity.startswith("sha256:") else f"sha256:{identity}"


def parse_image(section: Section) -> Reading[ImageFacts]:
    """Return the one image in a section of ``image inspect``."""
    if section.trouble:
        return Unknown(section.trouble, section.first)
    if section.exit == 127:
        return Unknown("no container engine", section.first)
    if "no such image" in section.text.lower() or "image not known" in section.text.lower():
        return Absent(section.text.strip().splitlines()[-1])
    if section.exit != 0:
        return Unknown(f"the engine did not answer (exit {section.exit})", _last(section.text))
    try:
        (image,) = parse_images(section.text)
    except ValueError as error:
        return Unknown(f"the engine's answer does not read: {error}", section.first)
    return Known(image, image.id)


def _last(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def common_bottom(layers: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> int:
    """Return how many layers from the bottom are there already, as part of any other image.

    Engines chain layers: one is of use only on top of all that lie under it.
    """
    most = 0
    for other in others:
        same = 0
        while same < min(len(layers), len(other)) and layers[same] == other[same]:
            same += 1
        most = max(most, same)
    return most


def differing(identities: Mapping[str, Reading[str]]) -> str:
    """Return why hosts do not hold one and the same image, or "" when they surely do."""
    unknown = [host for host, r in sorted(identities.items()) if not isinstance(r, Known)]
    if unknown:
        return "; ".join(f"{host}: {_why(identities[host])}" for host in unknown)
    found = {host: r.value for host, r in sorted(identities.items()) if isinstance(r, Known)}
    if len(set(found.values())) <= 1:
        return ""
    return "; ".join(f"{host} has {identity[:19]}" for host, identity in found.items())


def _why(reading: Reading[str]) -> str:
    return reading.why if isinstance(reading, Unknown) else "does not have it"
