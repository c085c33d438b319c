"""Make an image ready to travel: its base mirrored, its layers in the controller's registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from ..core.errors import Blocked
from ..core.event import Event
from ..core.reading import Absent, Known, Unknown
from ..core.remote import Tunnels
from ..edge import registry
from ..edge.engine import Engine
from ..edge.registry import Registry, Stored
from ..image.facts import ImageFacts
from ..image.mirror import Means, Mirror, estimated
from ..image.record import kept_name
from ..image.route import Cargo, Way
from .mirror import foresee_mirror, mirror_base
from .ship_types import Shipping


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image ready to travel: its cargo, the running registry that holds it, its base's lot.

    `local` and `stored` are None where there is no registry, `stored` also before the push.
    """

    cargo: Cargo
    local: Registry | None = None
    stored: Stored | None = None
    mirror: Mirror | None = None


@contextlib.contextmanager
def loaded(
    shipping: Shipping, reference: str, identity: str = "", *, only_look: bool = False
) -> Iterator[Loaded]:
    """Give an image ready to travel; with `only_look` nothing is copied, and sizes are estimates.

    `identity` is the ID to carry, "" what the reference stands for. Raises Blocked when the source
    does not have the image.
    """
    facts = _source_image(shipping.source, reference, identity)
    name, _, tag = reference.rpartition(":")
    kept = kept_name(name, tag, facts.id)
    cargo = Cargo(facts, reference, kept)
    if not only_look:
        shipping.source.tag(facts.id, kept)
    if not uses_registry(shipping):
        yield Loaded(cargo)
        return
    with _registry(shipping) as local:
        look = _foreseen if only_look else _pushed
        yield look(shipping, local, cargo, name, kept.rpartition(":")[2])


def uses_registry(shipping: Shipping) -> bool:
    """Return whether images go through the controller's own registry."""
    return shipping.way is not Way.ARCHIVE and not shipping.own_registry and registry.available()


def _registry(shipping: Shipping) -> AbstractContextManager[Registry]:
    if shipping.local is not None:
        return contextlib.nullcontext(shipping.local)
    return registry.running(shipping.folder / "registry")


def _foreseen(shipping: Shipping, local: Registry, cargo: Cargo, name: str, tag: str) -> Loaded:
    """Return what the registry has of an image, or an estimate of what it will have."""
    found = foresee_mirror(shipping, local, name, cargo.facts)
    if isinstance(local.manifest(name, tag), Known):
        stored = local.stored(name, tag)
        return Loaded(stored.fill(cargo, found.manifest, shipping.base), local, None, found)
    base = shipping.source.image(shipping.base) if shipping.base else Absent()
    sizes = tuple(estimated(cargo.facts, base, found.manifest))
    if found.means is not Means.PUSH and found.manifest:
        digest = shipping.base.partition("@")[2]
        cargo = replace(cargo, base_digest=digest, base_layers=len(found.manifest.layers))
    return Loaded(replace(cargo, sizes=sizes), local, None, found)


def _pushed(shipping: Shipping, local: Registry, cargo: Cargo, name: str, tag: str) -> Loaded:
    """Mirror the base and push the image, as far as the registry lacks them."""
    found = mirror_base(shipping, local, name, cargo.facts)
    if not local.holds(name, tag, cargo.facts.id):
        shipping.listen(Event(shipping.source.name, "push", f"{cargo.kept} to the local registry"))
        _push(shipping.source, local, cargo.facts, name, tag)
    stored = local.stored(name, tag)
    cargo = stored.fill(cargo, found.manifest, shipping.base)
    if found.means is Means.HELD and not cargo.base_layers:
        text = (
            "base: the engine pushed its layers elsewhere before and keeps those digests;"
            " a pull brings hosts the base again, --way layers does not"
        )
        shipping.listen(Event(shipping.source.name, "mirror", text))
    return Loaded(cargo, local, stored, found)


def _push(source: Engine, local: Registry, facts: ImageFacts, name: str, tag: str) -> None:
    """Push to the controller's registry, through a tunnel where the image is on another host."""
    if not isinstance(source.remote, Tunnels):
        return local.push(source, facts, name, tag)
    # The same port on both ends keeps the name under which the engine remembers what it pushed.
    with source.remote.tunnel(to_port=local.port, host_port=local.port) as tunnel:
        return local.push(source, facts, name, tag, port=tunnel.port)


def _source_image(source: Engine, reference: str, identity: str) -> ImageFacts:
    match source.image(identity or reference):
        case Known(value=facts):
            return facts
        case Absent():
            which = f"{reference} {identity[:19]}".rstrip()
            again = " --force" if identity else ""
            raise Blocked(
                f"cannot ship {which}: {source.name} does not have it",
                host=source.name,
                remedy=f"bringup image.build {reference.partition(':')[0]}{again}",
            )
        case Unknown() as silent:
            raise source.silent(f"cannot ship {reference}", silent)
