"""Verbs over images: check, build, compare, carry, go back, clean up, carry patches over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, ToolError, gravest
from ..core.verb import Help, Verb
from ..report_screen import Screen
from .common import (
    AcceptNew,
    Exclude,
    Folder,
    Groups,
    Hosts,
    KnownHosts,
    Limit,
    State,
    Stats,
    show_stats,
)

if TYPE_CHECKING:
    from ..image.route import Way

Images = Annotated[str, Help("folder of the image folders")]
Name = Annotated[str, Help("image: a folder's name")]
EngineWords = Annotated[
    str, Help("engine of this machine: docker, podman or a whole command", env="BRINGUP_ENGINE")
]
On = Annotated[str, Help("host whose engine builds (default: this machine's)")]
Wheels = Annotated[str, Help("take packages from this folder of wheels alone")]
IndexUrl = Annotated[str, Help("package index to ask (default: pip's own setting)")]
Check = Annotated[bool, Help("show what would change; write nothing")]


def image_check(
    screen: Screen,
    name: Annotated[str, Help("image: a folder's name (default: all)")] = "",
    *,
    images: Images = "images",
    inventory: Folder = "inventory",
    wheels: Wheels = "",
    index: IndexUrl = "",
    on: On = "",
    built: Annotated[bool, Help("also ask the built image every question of its gate")] = False,
    engine: EngineWords = "docker",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Check images before a build: pins exist, the base's packages stay, flags are known."""
    from ..flow_image import check
    from ..flow_image_flags import rendered_flags, strange_flags
    from ..flow_image_gate import gate
    from ..flow_image_open import (
        Place,
        engine_here,
        folders_of,
        index_for,
        inventory_if_any,
        opened,
    )
    from ..flow_open import Choice
    from ..report_image import findings_view, gate_view

    known, codes = inventory_if_any(inventory), [Exit.DONE]
    for folder in folders_of(images, name):
        known_as = folder.recipe.name
        flags = strange_flags(known, known_as) if known else {}
        findings = check(
            folder, index=index_for(wheels, index), flags=flags, engine=engine_here(engine),
            listen=screen.tell,
        )  # fmt: skip
        screen.show(findings_view(known_as, findings))
        screen.emit({"schema": "bringup.image-check/1", "image": known_as, "findings": findings})
        codes += [Exit.BLOCKED for finding in findings if finding.level.value == "block"]
        if not built:
            continue
        place = Place(images, state, engine, on)
        choice = Choice(inventory, known_hosts=known_hosts, accept_new=accept_new)
        with opened(place, choice, screen.tell, hosts=False) as yard:
            asked = rendered_flags(known, known_as) if known else ()
            report = gate(
                folder, yard.builder, folder.recipe.reference, flags=asked, listen=screen.tell
            )
        screen.show(gate_view(report))
        screen.emit(
            {"schema": "bringup.image-gate/1", "image": known_as, "answers": report.answers}
        )
    return gravest(codes)


def image_build(
    screen: Screen,
    name: Name,
    *,
    check: Check = False,
    images: Images = "images",
    inventory: Folder = "inventory",
    engine: EngineWords = "docker",
    on: On = "",
    builder: Annotated[str, Help("buildkit, classic, podman or buildah (default: the best)")] = "",
    fetch_wheels: Annotated[bool, Help("download wheels here: the build needs no network")] = False,
    wheels: Wheels = "",
    index: IndexUrl = "",
    network: Annotated[str, Help("network of the build, as host or none")] = "",
    force: Annotated[bool, Help("build although nothing changed")] = False,
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Build an image where its inputs changed, gate it, and let its name stand for it.

    Unchanged inputs build nothing. A failing gate leaves the name with the old image. With
    --check: exit 5 where a build is needed, 0 where not.
    """
    from ..flow_image import build, foresee
    from ..flow_image_open import Place, folder_of, index_for, opened, order_for
    from ..flow_open import Choice
    from ..report_image import built_view, changes_view, gate_view

    folder = folder_of(images, name)
    choice = Choice(inventory, known_hosts=known_hosts, accept_new=accept_new)
    with opened(Place(images, state, engine, on), choice, screen.tell, hosts=False) as yard:
        if check:
            needed, why, different = foresee(folder, yard.builder)
            screen.show(changes_view(folder.recipe.reference, why, different))
            screen.emit(_foreseen(name, needed, why, different))
            return Exit.WOULD_CHANGE if needed else Exit.DONE
        order = order_for(
            yard, folder,
            inventory=inventory, index=index_for(wheels, index), builder=builder,
            fetch_wheels=fetch_wheels, network=network, force=force, listen=screen.tell,
        )  # fmt: skip
        done = build(folder, order)
    if done.report:
        screen.show(gate_view(done.report))
    screen.show(built_view(done.reference, done.image.id, done.why, done.record))
    screen.emit(
        {
            "schema": "bringup.image-build/1", "image": name, "reference": done.reference,
            "id": done.image.id, "why": done.why, "built": done.record is not None,
            "record": done.record,
        }
    )  # fmt: skip
    return Exit.DONE


def _foreseen(name: str, needed: bool, why: str, different: object) -> dict[str, object]:
    return {
        "schema": "bringup.image-diff/1", "image": name, "build": needed, "why": why,
        "changes": different,
    }  # fmt: skip


def image_diff(
    screen: Screen,
    name: Name,
    *,
    images: Images = "images",
    engine: EngineWords = "docker",
    on: On = "",
    inventory: Folder = "inventory",
) -> Exit:
    """Show which inputs differ from the image that is there. Exit 5 where some do."""
    return image_build(
        screen, name, check=True, images=images, engine=engine, on=on, inventory=inventory
    )


def image_history(
    screen: Screen,
    name: Name,
    *,
    images: Images = "images",
    engine: EngineWords = "docker",
    state: State = "",
) -> Exit:
    """List the builds of an image that are on record here, newest first."""
    from ..core.reading import Known
    from ..edge.image_store import ImageStore
    from ..flow_image_open import engine_here, folder_of, state_of
    from ..report_image import history_view

    folder = folder_of(images, name)
    records = ImageStore(state_of(state)).records(name)
    there = engine_here(engine).image(folder.recipe.reference)
    current = there.value.id if isinstance(there, Known) else ""
    screen.show(history_view(folder.recipe.reference, records, current))
    screen.emit(
        {"schema": "bringup.image-history/1", "image": name, "current": current, "records": records}
    )
    return Exit.DONE


def image_ship(
    screen: Screen,
    name: Name,
    *,
    host: Hosts = (),
    group: Groups = (),
    limit: Limit = "",
    exclude: Exclude = (),
    check: Check = False,
    way: Annotated[str, Help("layers, pull, archive or registry (default: the cheapest)")] = "",
    at_once: Annotated[int, Help("hosts served at the same time")] = 4,
    relay: Annotated[
        bool, Help("let the first host hand a big image on to the others, over their network")
    ] = False,
    login_from: Annotated[
        str, Help("environment variable with user:password of the inventory's registry")
    ] = "",
    images: Images = "images",
    engine: EngineWords = "docker",
    on: On = "",
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
    stats: Stats = False,
) -> Exit:
    """Carry a built image to hosts: only what each lacks, compared by ID afterwards.

    Shows the way and its bytes for each host first. What arrived is not sent again by the next
    run. The image before keeps a name of its own on every host.
    """
    from ..flow_image_open import Place, folder_of, opened, registry_login
    from ..flow_open import Choice
    from ..flow_ship import Shipping, loaded, plan_shipment, ship
    from ..report_image import routes_view, shipped_view

    folder = folder_of(images, name)
    choice = Choice(inventory, host, group, limit, exclude, known_hosts, accept_new, state)
    login = registry_login(login_from, os.environ)
    with opened(Place(images, state, engine, on), choice, screen.tell, hosts=True) as yard:
        shipping = Shipping(
            source=yard.builder,
            hosts=yard.remotes,
            folder=yard.store.folder,
            roots={one.name: one.root for one in yard.hosts},
            relay=relay,
            addresses={one.name: one.advertise or one.login.address for one in yard.hosts},
            limit=at_once,
            way=_way(way),
            own_registry=yard.inventory.registry if yard.inventory else "",
            login=login,
            listen=screen.tell,
        )
        reference = folder.recipe.reference
        if check:
            with loaded(shipping, reference) as (cargo, _, _):
                routes = [planned.route for planned in plan_shipment(shipping, cargo).values()]
            screen.show(routes_view(reference, cargo.facts.id, routes))
            screen.emit({"schema": "bringup.image-routes/1", "image": name, "routes": routes})
            moves = any(route.way.value != "same" for route in routes)
            return Exit.WOULD_CHANGE if moves else Exit.DONE
        shipment = ship(shipping, reference)
        traffic = yard.traffic()
    arrived = [one for _, one in sorted(shipment.arrived.items())]
    screen.show(shipped_view((a.route, a.identity, a.sent, a.seconds) for a in arrived))
    screen.emit({"schema": "bringup.image-shipment/1", "image": name, "hosts": arrived})
    if stats:
        show_stats(screen, traffic)
    return _errors(screen, [one.error for one in arrived])


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
    for error in errors:
        if error is not None:
            screen.fail(error)
    return gravest([error.code if error else Exit.DONE for error in errors])


def image_rollback(
    screen: Screen,
    name: Name,
    *,
    host: Hosts = (),
    group: Groups = (),
    limit: Limit = "",
    exclude: Exclude = (),
    to: Annotated[str, Help("ID (or its beginning) of the image (default: the one before)")] = "",
    check: Check = False,
    images: Images = "images",
    inventory: Folder = "inventory",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
    stats: Stats = False,
) -> Exit:
    """Let an image's name stand for an earlier image again, on hosts that kept it."""
    from ..flow_image_keep import rollback
    from ..flow_image_open import Place, folder_of, opened
    from ..flow_open import Choice
    from ..report_image import kept_view

    reference = folder_of(images, name).recipe.reference
    choice = Choice(inventory, host, group, limit, exclude, known_hosts, accept_new)
    with opened(Place(images), choice, screen.tell, hosts=True) as yard:
        done = rollback(yard.engines, reference, to=to, check=check, listen=screen.tell)
        traffic = yard.traffic()
    screen.show(kept_view(((k.host, k.identity, k.was, k.names) for k in done), "from"))
    screen.emit({"schema": "bringup.image-rollback/1", "image": name, "hosts": done})
    if stats:
        show_stats(screen, traffic)
    return _errors(screen, [kept.error for kept in done])


def image_prune(
    screen: Screen,
    name: Name,
    *,
    host: Hosts = (),
    group: Groups = (),
    limit: Limit = "",
    exclude: Exclude = (),
    keep: Annotated[int, Help("earlier images that stay, for a rollback")] = 1,
    check: Check = False,
    images: Images = "images",
    inventory: Folder = "inventory",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
    stats: Stats = False,
) -> Exit:
    """Remove old images of one name from hosts; the current one and other names stay."""
    from ..flow_image_keep import prune
    from ..flow_image_open import Place, folder_of, opened
    from ..flow_open import Choice
    from ..flow_ship import STAGE
    from ..report_image import kept_view

    reference = folder_of(images, name).recipe.reference
    choice = Choice(inventory, host, group, limit, exclude, known_hosts, accept_new)
    with opened(Place(images), choice, screen.tell, hosts=True) as yard:
        done = prune(
            yard.engines, reference, keep=keep, stage=STAGE, check=check, listen=screen.tell
        )
        traffic = yard.traffic()
    screen.show(kept_view(((k.host, k.identity, "", k.names) for k in done), "removed"))
    screen.emit({"schema": "bringup.image-prune/1", "image": name, "hosts": done})
    if stats:
        show_stats(screen, traffic)
    return _errors(screen, [kept.error for kept in done])


def image_pin(
    screen: Screen,
    name: Name,
    *,
    check: Check = False,
    images: Images = "images",
    engine: EngineWords = "docker",
) -> Exit:
    """Hold an image's base to the digest its tag stands for, and record what the base holds."""
    from ..flow_image_base import pin, write_pin
    from ..flow_image_open import engine_here, folder_of

    folder = folder_of(images, name)
    pinned = pin(folder, engine_here(engine))
    written = () if check else write_pin(folder, pinned)
    stated = folder.recipe.engine.version or "any"
    screen.show(
        f"{pinned.reference} is {pinned.digest or f'without a digest: {pinned.why}'}",
        f"  {len(pinned.packages)} packages, Python {pinned.python}, "
        f"{folder.recipe.engine.name} {pinned.engine_version or 'not there'} (stated: {stated})",
        *(f"  wrote {path}" for path in written),
    )
    screen.emit({"schema": "bringup.image-pin/1", "image": name, "pinned": pinned})
    return Exit.WOULD_CHANGE if check and pinned.digest != folder.recipe.base.digest else Exit.DONE


def image_rebase(
    screen: Screen,
    name: Name,
    *,
    to: Annotated[str, Help("new base that the engine has: reference or ID")],
    write: Annotated[bool, Help("write clean merges and the new sums into the folder")] = False,
    images: Images = "images",
    engine: EngineWords = "docker",
) -> Exit:
    """Show what patches did, what a new base did, and where they meet, file by file.

    Exit 4 where a person has to decide: a conflict, or a file that is gone.
    """
    from ..flow_image_base import rebase, write_rebased
    from ..flow_image_open import engine_here, folder_of
    from ..image.rebase import Meeting
    from ..report_image import rebase_view

    folder = folder_of(images, name)
    files = rebase(folder, engine_here(engine), to=to)
    screen.show(rebase_view(name, files))
    written = write_rebased(folder, files) if write else ()
    screen.show(*(f"  wrote {path}" for path in written))
    screen.emit({"schema": "bringup.image-rebase/1", "image": name, "files": files})
    hard = {Meeting.CONFLICT, Meeting.GONE, Meeting.UNKNOWN}
    return Exit.BLOCKED if any(file.meeting in hard for file in files) else Exit.DONE


VERBS = (
    Verb("image.check", image_check, reads_only=True),
    Verb("image.build", image_build),
    Verb("image.diff", image_diff, reads_only=True),
    Verb("image.history", image_history, reads_only=True),
    Verb("image.ship", image_ship),
    Verb("image.rollback", image_rollback),
    Verb("image.prune", image_prune),
    Verb("image.pin", image_pin),
    Verb("image.rebase", image_rebase),
)
