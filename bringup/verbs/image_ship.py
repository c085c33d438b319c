"""Verbs over images on hosts: carry one there, go back to an earlier one, clean up."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, ToolError, gravest
from ..core.verb import Help, Verb
from ..options.hosts import BareWorkspace, HostSelection, Workspace
from ..options.images import Check, ImagePlace, Images, Name
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..core.event import Listen
    from ..flow.image_open import Opened
    from ..flow.pull import RegistryLogin
    from ..flow.ship import Shipping
    from ..image.route import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Carriage:
    """How an image is carried to hosts."""

    way: Annotated[str, Help("layers, pull, archive or registry (default: the cheapest)")] = ""
    at_once: Annotated[int, Help("hosts served at the same time")] = 4
    relay: Annotated[
        bool, Help("let the first host hand a big image on to the others, over their network")
    ] = False
    login_from: Annotated[
        str, Help("variable with user:password of the inventory's registry, if not the inventory's")
    ] = ""


def image_ship(
    screen: Screen,
    name: Name,
    *,
    hosts: HostSelection,
    check: Check = False,
    how: Carriage,
    place: ImagePlace,
    workspace: Workspace,
) -> Exit:
    """Carry a built image to hosts: only what each lacks, compared by ID afterwards.

    Shows the way and its bytes for each host first. What arrived is not sent again by the next
    run. The image before keeps a name of its own on every host.
    """
    from ..flow.image_open import folder_of, opened, registry_login
    from ..flow.ship import ship
    from ..report.image import shipped_view

    folder = folder_of(place.images, name)
    reference = folder.recipe.reference
    with opened(place, workspace, screen.tell, hosts=hosts) as yard:
        named = "" if check or yard.inventory is None else yard.inventory.registry_login
        login = registry_login(how.login_from or named, os.environ)
        shipping = _shipping(yard, how, folder.recipe.base.pinned, login, screen.tell)
        if check:
            return _routes(screen, shipping, name, reference)
        shipment = ship(shipping, reference)
    arrived = [one for _, one in sorted(shipment.arrived.items())]
    screen.show(shipped_view((a.route, a.identity, a.sent, a.seconds) for a in arrived))
    screen.emit({"schema": "bringup.image-shipment/1", "image": name, "hosts": arrived})
    return _errors(screen, [one.error for one in arrived])


def _shipping(
    yard: Opened, how: Carriage, base: str, login: RegistryLogin | None, listen: Listen
) -> Shipping:
    from ..flow.open import operator
    from ..flow.ship import Shipping

    return Shipping(
        source=yard.builder,
        hosts=yard.remotes,
        folder=yard.store.folder,
        roots={one.name: one.root for one in yard.hosts},
        relay=how.relay,
        addresses={one.name: one.reached_at for one in yard.hosts},
        limit=how.at_once,
        way=_way(how.way),
        own_registry=yard.inventory.registry if yard.inventory else "",
        login=login,
        base=base,
        operator=operator(),
        listen=listen,
    )


def _routes(screen: Screen, shipping: Shipping, name: str, reference: str) -> Exit:
    """Show the way and its bytes for each host, and what comes of the base; send nothing."""
    from ..flow.load import loaded
    from ..flow.ship import plan_shipment
    from ..report.image import routes_view

    with loaded(shipping, reference, only_look=True) as ready:
        routes = [planned.route for planned in plan_shipment(shipping, ready.cargo).values()]
    mirror = str(ready.mirror or "")
    screen.show(routes_view(reference, ready.cargo.facts.id, routes, mirror))
    screen.emit(
        {"schema": "bringup.image-routes/1", "image": name, "base": mirror, "routes": routes}
    )
    moves = (Exit.WOULD_CHANGE for route in routes if route.way.value != "same")
    return gravest([*moves, *(Exit.BLOCKED for route in routes if route.trouble)])


def _way(name: str) -> Way | None:
    from ..core.errors import UsageError
    from ..image.route import Way as Ways

    if not name:
        return None
    try:
        return Ways(name)
    except ValueError:
        raise UsageError(
            f"cannot ship by {name!r}", remedy="one of: layers, pull, archive, registry"
        ) from None


def _errors(screen: Screen, errors: list[ToolError | None]) -> Exit:
    screen.fail(*filter(None, errors))
    return gravest([error.code if error else Exit.DONE for error in errors])


def image_rollback(
    screen: Screen,
    name: Name,
    *,
    hosts: HostSelection,
    to: Annotated[str, Help("ID (or its beginning) of the image (default: the one before)")] = "",
    check: Check = False,
    images: Images = "images",
    workspace: BareWorkspace,
) -> Exit:
    """Let an image's name stand for an earlier image again, on hosts that kept it."""
    from ..flow.image_keep import rollback
    from ..flow.image_open import folder_of, opened
    from ..flow.open import operator
    from ..report.image import kept_view

    reference = folder_of(images, name).recipe.reference
    with opened(ImagePlace(images=images), workspace, screen.tell, hosts=hosts) as yard:
        done = rollback(
            yard.engines, reference,
            to=to, check=check, operator=operator(), listen=screen.tell,
        )  # fmt: skip
    screen.show(kept_view(((k.host, k.identity, k.was, k.names) for k in done), "from"))
    screen.emit({"schema": "bringup.image-rollback/1", "image": name, "hosts": done})
    errors = _errors(screen, [kept.error for kept in done])
    moves = any(not kept.error and kept.identity != kept.was for kept in done)
    return gravest([errors, Exit.WOULD_CHANGE if check and moves else Exit.DONE])


def image_prune(
    screen: Screen,
    name: Name,
    *,
    hosts: HostSelection,
    keep: Annotated[int, Help("earlier images that stay, for a rollback")] = 1,
    check: Check = False,
    images: Images = "images",
    workspace: BareWorkspace,
) -> Exit:
    """Remove old images of one name from hosts; the current one and other names stay."""
    from ..flow.image_keep import prune
    from ..flow.image_open import folder_of, opened
    from ..flow.open import operator
    from ..flow.ship import STAGE
    from ..report.image import kept_view

    reference = folder_of(images, name).recipe.reference
    with opened(ImagePlace(images=images), workspace, screen.tell, hosts=hosts) as yard:
        done = prune(
            yard.engines, reference,
            keep=keep, stage=STAGE, check=check, operator=operator(), listen=screen.tell,
        )  # fmt: skip
    verb = "would remove" if check else "removed"
    screen.show(kept_view(((k.host, k.identity, "", k.names) for k in done), verb))
    screen.emit({"schema": "bringup.image-prune/1", "image": name, "hosts": done})
    errors = _errors(screen, [kept.error for kept in done])
    goes = any(kept.names for kept in done)
    return gravest([errors, Exit.WOULD_CHANGE if check and goes else Exit.DONE])


VERBS = (
    Verb("image.ship", image_ship),
    Verb("image.rollback", image_rollback),
    Verb("image.prune", image_prune),
)
