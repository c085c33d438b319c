"""What the flow is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..core.event import Listen, ignore
from ..core.fixes import Choice
from ..core.host import Deployment, Host, Inventory, Scalar
from ..core.plan import Plan
from ..core.remote import Fleet
from ..core.steps import Carry
from ..edge.store import Store
from ..image.route import Route
from ..image.wanted import Offer


class Renderer(Protocol):
    """Turns a template and its values into text."""

    def text(self, template: str, values: Mapping[str, object]) -> str: ...


class Freight(Protocol):
    """Images of ours that this run may have to carry to hosts."""

    def offer(self, deployment: Deployment) -> Offer | None:
        """Return the image of a deployment as the controller has it; None where it is not ours."""
        ...

    def foresee(self, host: Host, offer: Offer, engine: str) -> Route:
        """Return by which way a host's engine would get an image; reads only, one trip."""
        ...

    def carry(self, host: Host, action: Carry) -> None:
        """Carry an image to a host; raises ToolError."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    """The outside, handed in: so that the flow runs against real hosts and recorded ones alike."""

    fleet: Fleet
    renderer: Renderer
    store: Store
    moment: Callable[[], str]  # ISO 8601, UTC
    nonce: Callable[[], str]
    operator: str
    version: str
    listen: Listen = ignore
    limit: int = 64  # hosts at once
    freight: Freight | None = None  # None: no image is carried


@dataclass(frozen=True, slots=True)
class Order:
    """What the operator asked for."""

    inventory: Inventory
    hosts: tuple[Host, ...]
    deployments: Mapping[str, Deployment] = field(default_factory=dict)  # by host, peers included
    check: bool = False
    deep: bool = False  # also ask what loads the hardware; never of a GPU that is in use
    set: Mapping[str, Scalar] = field(default_factory=dict)  # knobs by the operator's word
    fix: Choice | None = None  # None: nothing is fixed
    approve: Callable[[Plan], None] = lambda _: None  # raises where it may not be applied

    def served(self) -> dict[str, tuple[str, ...]]:
        """Return the ordered hosts of each deployment; none named where they are all of its hosts.

        A deployment whose hosts are all ordered is meant as a whole, its services included.
        """
        ordered = [host.name for host in self.hosts if host.name in self.deployments]
        named: dict[str, tuple[str, ...]] = {}
        for name in ordered:
            deployment = self.deployments[name]
            named[deployment.name] = (*named.get(deployment.name, ()), name)
        wholes = {
            one.name: {host for role in one.roles for host in role.hosts}
            for one in self.deployments.values()
        }
        return {n: () if set(hosts) >= wholes[n] else hosts for n, hosts in named.items()}
