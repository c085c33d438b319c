"""What a shipment is given, what is known of each host before it, and how each came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import ToolError
from ..core.event import Listen, ignore
from ..core.reading import Known
from ..core.remote import Remote
from ..edge.engine import Engine
from ..edge.registry import Registry
from ..image.facts import ImageFacts
from ..image.route import Cargo, HostImages, Route, Way
from .pull import RegistryLogin

STAGE = "/var/lib/bringup/images"


@dataclass(frozen=True, slots=True)
class Shipping:
    """What a shipment needs: the engine that has the image, the hosts, and how many at once.

    `hosts` gives each host's remote by name; `connect` makes it anew after a line dropped.
    """

    source: Engine
    hosts: Mapping[str, Remote]
    folder: Path  # the state folder: the registry lives below it
    engine: tuple[str, ...] = ("docker",)
    engines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roots: Mapping[str, str] = field(default_factory=dict)  # `root:` of hosts that have one
    limit: int = 4
    way: Way | None = None  # the operator's word
    own_registry: str = ""  # host[:port]/path of the inventory
    login: RegistryLogin | None = None
    base: str = ""  # what the image was built from: NAME@sha256:… where it is held to a digest
    local: Registry | None = None  # the controller's registry where it runs already
    stage: str = STAGE
    relay: bool = False  # let the first host hand parts on to the others
    addresses: Mapping[str, str] = field(default_factory=dict)  # where hosts reach each other
    reopens: int = 5
    operator: str = "bringup"  # who ships, as others read it that find a host locked
    listen: Listen = ignore

    def engine_of(self, host: str) -> Engine:
        return Engine(self.hosts[host], self.engines.get(host, self.engine), host)


@dataclass(frozen=True, slots=True)
class Arrived:
    """How one host came out: by which route, what was really sent, and its image's ID."""

    route: Route
    identity: str = ""
    sent: int = 0
    seconds: float = 0.0
    error: ToolError | None = None


@dataclass(frozen=True, slots=True)
class Shipment:
    """All hosts of one shipment, by name."""

    cargo: Cargo
    arrived: Mapping[str, Arrived]

    @property
    def failed(self) -> tuple[Arrived, ...]:
        return tuple(a for a in self.arrived.values() if a.error is not None)


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """One host before its part of a shipment: what it holds, and by which way the image comes."""

    there: HostImages
    route: Route

    @property
    def images(self) -> tuple[ImageFacts, ...]:
        return self.there.images.value if isinstance(self.there.images, Known) else ()
