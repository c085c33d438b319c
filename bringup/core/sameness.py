"""Whether two engines hold one and the same image, whatever each of them calls its ID.

A classic store names an image by the sum of its description, containerd's store by the digest of
its manifest (https://docs.docker.com/engine/storage/containerd/): one image, two IDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells an image from others. `layers` are diff IDs; () means that nobody said."""

    id: str
    digests: tuple[str, ...] = ()  # NAME@sha256:… of registries
    layers: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_manifest(self) -> bool:
        """Whether the ID is a manifest's digest: containerd's store lists it among the digests."""
        return any(name.endswith(f"@{self.id}") for name in self.digests)

    @property
    def sums(self) -> frozenset[str]:
        return frozenset({self.id, *(name.rpartition("@")[2] for name in self.digests)})


def same_image(one: Identity, other: Identity) -> bool | None:
    """Return whether two identities are of one image; None where that cannot be told."""
    if one.sums & other.sums:
        return True
    if one.is_manifest == other.is_manifest:
        return False
    if not (one.layers and other.layers):
        return None
    return one.layers == other.layers and one.labels == other.labels
