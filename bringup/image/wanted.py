"""Which image a host of a deployment is to hold: decided before anything is sent.

An image folder promises what its inputs say. What was built from these very inputs is known by a
record here, by the engine here, or by the label that each image carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.rules import Finding, Level, Status
from ..core.sameness import Identity, same_image
from .context import LABEL

SOURCE = "docs/images.md#provision-brings-the-image"
REASON = "hosts run what the image's folder says, all of them one and the same"


@dataclass(frozen=True, slots=True)
class Offer:
    """An image folder as the controller can give it. `built` is the ID built from its inputs."""

    name: str
    reference: str
    context: str
    built: Reading[str]
    is_coming: bool = False  # check mode of a run that will build it first


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a host is to hold: an ID to carry, or "" and a finding where there is none to carry."""

    identity: str = ""
    finding: Finding | None = None


def wanted(offer: Offer, held: Mapping[str, Reading[Identity]], host: str) -> Wanted:
    """Return what a host is to hold, by what the controller has and all hosts of it hold."""
    if isinstance(offer.built, Known):
        return Wanted(offer.built.value)
    fresh = {name: one for name, one in _known(held).items() if _context(one) == offer.context}
    if host in fresh:
        return Wanted()  # built of these inputs elsewhere; that all hold the same is another rule's
    if fresh:
        return Wanted(finding=_elsewhere(offer, host, sorted(fresh)))
    return Wanted(finding=_untied(offer, held.get(host, Unknown("not asked")), host))


def _untied(offer: Offer, own: Reading[Identity], host: str) -> Finding:
    """Return what to say where nobody is known to have built what the folder says."""
    match own:
        case Unknown(why=why):
            return _told(offer, host, Status.UNKNOWN, Level.NOTE, f"unknown: {why}")
        case Absent():
            return _not_built(offer, host, f"{offer.reference} is not on this host")
        case Known(value=image) if _context(image):
            line = f"{image.id[:19]} was built from other inputs: context {_context(image)[:19]}"
            return _not_built(offer, host, line)
        case Known(value=image):
            line = (
                f"{image.id[:19]} was not built by bringup; whether it is this image is not known"
            )
    return _told(offer, host, Status.WARN, Level.NOTE, line)


def _known(held: Mapping[str, Reading[Identity]]) -> dict[str, Identity]:
    return {name: reading.value for name, reading in held.items() if isinstance(reading, Known)}


def _context(identity: Identity) -> str:
    return identity.labels.get(LABEL, "")


def _told(
    offer: Offer, host: str, status: Status, level: Level, *lines: str, remedy: str = ""
) -> Finding:
    return Finding(
        "image-built", "The image is built from its folder", status, level, host, lines, REASON,
        remedy or f"bringup image.build {offer.name}", SOURCE,
    )  # fmt: skip


def _not_built(offer: Offer, host: str, line: str) -> Finding:
    """Nobody is known to have built what the folder says: that comes first, and is no host's."""
    here = (
        f"the controller cannot tell: {offer.built.why}"
        if isinstance(offer.built, Unknown)
        else f"the controller has not built context {offer.context[:19]}"
    )
    if offer.is_coming:
        return _told(offer, host, Status.WARN, Level.WARN, line, here, remedy="it is built first")
    cure = f"bringup image.build {offer.name} (or provision --build), then this again"
    return _told(offer, host, Status.FAIL, Level.BLOCK, line, here, remedy=cure)


def _elsewhere(offer: Offer, host: str, holders: list[str]) -> Finding:
    line = f"{' '.join(holders)} has what the folder says, this host and the controller have not"
    cure = f"bringup image.ship {offer.name} --host {host} --on {holders[0]}"
    return _told(offer, host, Status.FAIL, Level.BLOCK, line, remedy=cure)


def settled(
    findings: tuple[Finding, ...],
    identity: str,
    held: Mapping[str, Reading[Identity]],
    ordered: frozenset[str],
) -> tuple[Finding, ...]:
    """Return findings as they stand when this run carries an image to the ordered hosts.

    Hosts that hold another one and are not ordered stay behind; no worker starts until they follow.
    """
    others = [
        f"{name} stays at {one.id[:19]}: it is not part of this run"
        for name, one in sorted(_known(held).items())
        if name not in ordered and same_image(one, Identity(identity)) is False
    ]
    hosts = " ".join(f"--host {name}" for name in sorted(held))

    def one(finding: Finding) -> Finding:
        if finding.id != "pair-image":
            return finding
        if others:
            lines = (*finding.evidence, *others)
            cure = f"bringup provision {hosts}"
            return replace(finding, level=Level.WARN, evidence=lines, remedy=cure)
        if finding.level is Level.BLOCK:
            cure = f"this run ships {identity[:19]} to them"
            return replace(finding, level=Level.WARN, remedy=cure)
        return finding

    return tuple(map(one, findings))
