"""Which hosts a verb is about, and what it works with: inventory, records, host keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help, Without

Folder = Annotated[
    str, Help("folder with hosts.yml, deployments/ and kinds/", env="BRINGUP_INVENTORY")
]
State = Annotated[
    str, Help("folder for facts and receipts (default: .bringup)", env="BRINGUP_STATE")
]
Hosts = Annotated[tuple[str, ...], Help("host name or pattern, as b300-[04,07]; repeatable")]
DeploymentName = Annotated[str, Help("deployment that the hosts serve, where they are in several")]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSelection:
    """Which hosts of the inventory are meant. Empty: none was named."""

    host: Hosts = ()
    group: Annotated[tuple[str, ...], Help("group of the inventory; repeatable")] = ()
    limit: Annotated[str, Help("keep only hosts that match this pattern")] = ""
    exclude: Annotated[
        tuple[str, ...], Help("leave out hosts that match this pattern; repeatable")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Where the inventory and the records lie, and which host keys are trusted."""

    inventory: Folder = "inventory"
    state: State = ""
    known_hosts: Annotated[str, Help("known_hosts file (default: ~/.ssh/known_hosts)")] = ""
    accept_new: Annotated[bool, Help("trust and record host keys that are not known yet")] = False


BareWorkspace = Annotated[Workspace, Without(("state",))]
"""The workspace of a verb that leaves no record."""
