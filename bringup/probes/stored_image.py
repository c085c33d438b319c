"""One image in the engine's store, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.sameness import Identity
from ..core.script import Section
from ..core.words import quote
from .containers import strings, word, words
from .text import answered


@dataclass(frozen=True, slots=True)
class StoredImage:
    """One image in the engine's store."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    bytes: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()  # diff IDs, bottom first; () where an older look did not ask

    @property
    def identity(self) -> Identity:
        whole = self.id if self.id.startswith("sha256:") else f"sha256:{self.id}"  # podman's
        return Identity(whole, self.digests, self.layers, self.labels)


_IMAGE = (
    "[{{json .Id}},{{json .RepoTags}},{{json .RepoDigests}},{{json .Size}},{{json .Config.Labels}},"
    "{{json .RootFS.Layers}}]"
)


def image_probe(reference: str) -> Probe[StoredImage]:
    """Return the question whether the engine has an image, by its reference."""
    look = f"ask $e image inspect {quote(reference)} --format {quote(_IMAGE)}"
    script = f"e=docker; tool docker >/dev/null || e=podman\n{look}\n"
    return Probe("image", StoredImage, script, parse_image, seconds=10, tool="docker")


def parse_image(section: Section) -> Reading[StoredImage]:
    """Return the image; absent only where the engine answers that it has none of that name."""
    if section.exit == 127 and section.first.endswith(": not found"):
        return Absent(section.first)
    if section.exit in (1, 125) and re.search(r"(?i)no such image|image not known", section.text):
        said = [line for line in section.text.splitlines() if re.search("(?i)image", line)]
        return Absent(said[-1].strip() if said else section.first)
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    line = next((x for x in answer.value.splitlines() if x.startswith('["')), "")
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return Unknown("the image could not be read", section.first)
    if len(values) not in (5, 6) or not re.fullmatch(r"(sha256:)?[0-9a-f]{12,64}", word(values[0])):
        return Unknown("the image has no id", section.first)
    identity, tags, digests, size, labels = values[:5]
    image = StoredImage(
        identity,
        words(tags),
        words(digests),
        size if isinstance(size, int) else None,
        strings(labels),
        words(values[5]) if len(values) > 5 else (),
    )
    return Known(image, f"{', '.join(image.tags)} {identity[:19]}".strip())
