"""Verbs over images on the controller: check, build, compare, pin the base, carry patches over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb
from ..report.screen import Screen
from .common import AcceptNew, Folder, KnownHosts, State
from .image_options import Check, EngineWords, Images, IndexUrl, Name, On, Wheels

if TYPE_CHECKING:
    from ..image.gate import GateReport


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
    from ..flow.image_check import check
    from ..flow.image_flags import rendered_flags, strange_flags
    from ..flow.image_gate import GateFailed, gate
    from ..flow.image_open import (
        Place,
        engine_here,
        folders_of,
        index_for,
        inventory_if_any,
        opened,
    )
    from ..flow.open import Choice
    from ..report.image import findings_view

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
            try:
                report = gate(
                    folder, yard.builder, folder.recipe.reference, flags=asked, listen=screen.tell
                )
            except GateFailed as failure:
                _tell_gate(screen, known_as, failure.report)
                raise
        _tell_gate(screen, known_as, report)
    return gravest(codes)


def _tell_gate(screen: Screen, name: str, report: GateReport) -> None:
    """Show what a built image answered, whether its gate passed or failed."""
    from ..report.image import gate_view

    screen.show(gate_view(report))
    screen.emit({"schema": "bringup.image-gate/1", "image": name, "answers": report.answers})


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
    from ..flow.image import build, foresee
    from ..flow.image_gate import GateFailed
    from ..flow.image_open import Place, folder_of, index_for, opened, order_for
    from ..flow.open import Choice
    from ..report.image import built_view, changes_view

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
        try:
            done = build(folder, order)
        except GateFailed as failure:
            _tell_gate(screen, name, failure.report)
            raise
    if done.report:
        _tell_gate(screen, name, done.report)
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
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Show which inputs differ from the image that is there. Exit 5 where some do."""
    return image_build(
        screen, name,
        check=True, images=images, engine=engine, on=on, inventory=inventory,
        known_hosts=known_hosts, accept_new=accept_new,
    )  # fmt: skip


def image_history(
    screen: Screen,
    name: Name,
    *,
    images: Images = "images",
    engine: EngineWords = "docker",
    on: On = "",
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """List the builds of an image that are on record here, newest first.

    ``current`` of --json is the ID that the name stands for: "" for none, null where the engine
    did not say (``why``).
    """
    from ..core.reading import Unknown, value_of
    from ..flow.image_open import Place, folder_of, opened
    from ..flow.open import Choice
    from ..report.image import history_view

    reference = folder_of(images, name).recipe.reference
    choice = Choice(inventory, known_hosts=known_hosts, accept_new=accept_new)
    with opened(Place(images, state, engine, on), choice, screen.tell, hosts=False) as yard:
        records = yard.store.records(name)
        there = yard.builder.image(reference)
    facts, why = value_of(there), there.why if isinstance(there, Unknown) else ""
    current = None if why else facts.id if facts else ""
    screen.show(history_view(reference, records, current, why))
    screen.emit(
        {
            "schema": "bringup.image-history/1", "image": name, "current": current, "why": why,
            "records": records,
        }
    )  # fmt: skip
    return Exit.DONE


def image_pin(
    screen: Screen,
    name: Name,
    *,
    check: Check = False,
    images: Images = "images",
    engine: EngineWords = "docker",
) -> Exit:
    """Hold an image's base to the digest its tag stands for, and record what the base holds."""
    from ..flow.image_base import pin, pinned_files, write_pin
    from ..flow.image_open import engine_here, folder_of

    folder = folder_of(images, name)
    pinned = pin(folder, engine_here(engine))
    changed = tuple(pinned_files(folder, pinned)) if check else write_pin(folder, pinned)
    stated = folder.recipe.engine.version or "any"
    screen.show(
        f"{pinned.reference} is {pinned.digest or f'without a digest: {pinned.why}'}",
        f"  {len(pinned.packages)} packages, Python {pinned.python}, "
        f"{folder.recipe.engine.name} {pinned.engine_version or 'not there'} (stated: {stated})",
        *(f"  {'would write' if check else 'wrote'} {path}" for path in changed),
    )
    screen.emit(
        {
            "schema": "bringup.image-pin/1", "image": name, "pinned": pinned,
            "files": changed,
        }
    )  # fmt: skip
    return Exit.WOULD_CHANGE if check and changed else Exit.DONE


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
    from ..flow.image_base import rebase, write_rebased
    from ..flow.image_open import engine_here, folder_of
    from ..image.rebase import Meeting
    from ..report.image import rebase_view

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
    Verb("image.pin", image_pin),
    Verb("image.rebase", image_rebase),
)
