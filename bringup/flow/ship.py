"""Carry an image to hosts: only what each lacks, by a way that is shown first, compared after."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..core.errors import ToolError
from ..core.event import Event
from ..core.reading import Unknown
from ..core.remote import Remote, Tunnels
from ..core.script import compose, seconds_for, split
from ..core.words import HostPath
from ..edge import cargo_stream, host_images
from ..edge.pool import side_by_side
from ..image.route import Cargo, HostImages, Way, route
from .carry import Carrier
from .load import loaded
from .ship_types import STAGE, Arrived, PlannedHost, Shipment, Shipping

__all__ = ["STAGE", "Arrived", "PlannedHost", "Shipment", "Shipping", "plan_shipment", "ship"]


def plan_shipment(shipping: Shipping, cargo: Cargo) -> dict[str, PlannedHost]:
    """Return by which way each host would get the image; reads only, a trip a host."""

    def ask(host: str) -> HostImages:
        return look_at(
            shipping.hosts[host],
            shipping.engine_of(host).words,
            shipping.stage,
            root=shipping.roots.get(host, "/"),
        )

    answers = side_by_side(shipping.hosts, ask, limit=max(1, shipping.limit * 4))
    return {host: routed(shipping, host, cargo, there) for host, there in answers.items()}


def routed(shipping: Shipping, host: str, cargo: Cargo, there: HostImages) -> PlannedHost:
    """Return by which way a host that was looked at would get a cargo."""
    found = route(
        host, cargo, there,
        tunnels=isinstance(shipping.hosts[host], Tunnels) and not shipping.relay,
        own_registry=bool(shipping.own_registry),
        forced=shipping.way,
    )  # fmt: skip
    return PlannedHost(there, found)


def look_at(remote: Remote, engine: tuple[str, ...], stage: str, *, root: str = "/") -> HostImages:
    """Return what a host's engine holds; one trip. A host that cannot be reached is unknown."""
    questions = host_images.asks(engine, HostPath(stage))
    nonce = secrets.token_hex(8)
    try:
        script = compose(questions, nonce=nonce, root=root)
        said = remote.read(script, seconds=seconds_for(questions))
    except ToolError as error:
        gone: Unknown = Unknown(error.message)
        return HostImages(gone, gone, gone, {})
    return host_images.parse(split(said.stdout, nonce=nonce), engine)


def ship(shipping: Shipping, reference: str) -> Shipment:
    """Carry an image to every host and give it its name there; one host's failure is its own.

    Raises Blocked when the source does not have the image.
    """
    with loaded(shipping, reference) as ready, tempfile.TemporaryDirectory() as scratch:
        cargo = ready.cargo
        plans = plan_shipment(shipping, cargo)
        for planned in plans.values():
            shipping.listen(Event(planned.route.host, "ship", str(planned.route)))
        carrier = Carrier(shipping, cargo, ready.local, ready.stored, Path(scratch))
        carrier.prepare(plans.values())
        arrived = _seeded(carrier, plans) if shipping.relay else _each(carrier, plans)
    return Shipment(cargo, arrived)


def _each(carrier: Carrier, plans: Mapping[str, PlannedHost]) -> dict[str, Arrived]:
    """Carry to all hosts, a bounded number side by side."""
    limit = max(1, carrier.shipping.limit)
    return side_by_side(plans, lambda host: carrier.carry(plans[host]), limit=limit)


def _seeded(carrier: Carrier, plans: Mapping[str, PlannedHost]) -> dict[str, Arrived]:
    """Carry to one host first, which hands on to those that lack the same layers."""
    able = [p.route for p in plans.values() if p.route.way is Way.LAYERS and not p.route.trouble]
    big = [r for r in able if r.sends > cargo_stream.PART and r.host in carrier.shipping.addresses]
    seed = max(big, key=lambda r: (sum(o.present == r.present for o in big), r.host), default=None)
    if seed is None:
        return _each(carrier, plans)
    carrier.seed = seed.host
    arrived = {seed.host: carrier.carry(plans[seed.host])}
    rest = {host: plan for host, plan in plans.items() if host != seed.host}
    if arrived[seed.host].error is not None:
        carrier.let_go(seed.host)
        return arrived | _each(carrier, rest)
    with carrier.relaying(seed.host, seed.present):
        return arrived | _each(carrier, rest)
