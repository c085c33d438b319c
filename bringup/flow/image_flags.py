"""Which flags the deployments of an image give to its engine, and which of them nobody knows."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.errors import ToolError
from ..core.facts import Facts
from ..core.host import Deployment, Inventory
from ..core.reading import Known, Reading, Unknown
from ..core.rules import Level
from ..decide import Design, design


def deployments_with(inventory: Inventory, image: str) -> tuple[Deployment, ...]:
    """Return the deployments that run an image, by name."""
    return tuple(d for _, d in sorted(inventory.deployments.items()) if d.image.name == image)


def strange_flags(inventory: Inventory, image: str) -> dict[str, Reading[tuple[str, ...]]]:
    """Return, for each deployment of an image, what its engine version would refuse.

    Command lines are those that bare facts give: what a host's hardware adds is checked when it
    is provisioned.
    """
    return {d.name: _strange(inventory, d) for d in deployments_with(inventory, image)}


def _strange(inventory: Inventory, deployment: Deployment) -> Reading[tuple[str, ...]]:
    try:
        findings = [f for found in _designs(inventory, deployment) for f in found.findings]
    except ToolError as error:
        return Unknown(error.message)
    ours = [f for f in findings if f.id.startswith("flag-") and f.level is Level.BLOCK]
    if ours:
        return Known(tuple(dict.fromkeys(line for f in ours for line in f.evidence)))
    unsure = [line for f in findings if f.id == "version-unknown" for line in f.evidence]
    return Unknown("; ".join(dict.fromkeys(unsure))) if unsure else Known(())


def rendered_flags(inventory: Inventory, image: str) -> tuple[str, ...]:
    """Return every flag on the command lines of an image's deployments."""
    words: set[str] = set()
    for deployment in deployments_with(inventory, image):
        for found in _designs(inventory, deployment):
            for part in found.parts:
                words |= {str(word) for word in part.spec.command.argv}
    return tuple(sorted(word for word in words if word.startswith("--")))


def _designs(inventory: Inventory, deployment: Deployment) -> Iterator[Design]:
    hosts = [name for role in deployment.roles for name in role.hosts]
    facts = {name: Facts({}) for name in hosts}
    for name in dict.fromkeys(hosts):
        yield design(inventory, inventory.hosts[name], deployment, facts, {})
