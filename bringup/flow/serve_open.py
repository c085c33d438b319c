"""Open the tools for serving: over SSH, or on this machine where a deployment is all here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..core.event import Listen
from ..core.host import Inventory
from ..core.remote import Traffic
from ..edge.local import LocalRemote
from ..options.hosts import Workspace
from .open import read_inventory, tools_for
from .targets import Target, find_deployment, target_of
from .types import Tools


class LocalFleet:
    """Every host is this machine (core.remote.Fleet): for a controller that is the host itself."""

    def __init__(self, inventory: Inventory) -> None:
        self._remotes = {n: LocalRemote(host) for n, host in inventory.hosts.items()}

    def remote(self, name: str) -> LocalRemote:
        return self._remotes[name]

    def traffic(self) -> dict[str, Traffic]:
        return {}

    def close(self) -> None:
        """Nothing was opened."""


def target_in(workspace: Workspace, deployment: str) -> Target:
    """Return the named deployment as it is served, or the only one; raises UsageError."""
    known = read_inventory(workspace.inventory)
    return target_of(known, find_deployment(known, deployment))


@contextmanager
def serving_tools(
    inventory: Inventory, workspace: Workspace, listen: Listen, *, local: bool = False
) -> Iterator[Tools]:
    """Yield the tools for an inventory; with `local` no SSH is used."""
    with tools_for(inventory, workspace, listen) as tools:
        yield replace(tools, fleet=LocalFleet(inventory)) if local else tools
