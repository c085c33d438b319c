"""Verbs over images on the controller: check, build, compare, pin the base, carry patches over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb, Without
from ..options.hosts import BareWorkspace, Folder, Workspace
from ..options.images import (
    Building,
    Check,
    EngineWords,
    ImagePlace,
    Images,
    Name,
    On,
    Packages,
)
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..core.host import Inventory
    from ..edge.image_file import ImageFolder
    from ..flow.image import Built
    from ..image.context import InputChange
    from ..image.gate import GateReport


def image_check(
    screen: Screen,
    name: Annotated[str, Help("image: a folder's name (default: all)")] = "",
    *,
    images: Images = "images",
    inventory: Folder = "inventory",
    packages: Packages,
    on: On = "",
    built: Annotated[bool, Help("also ask the built image every question of its gate")] = False,
    engine: EngineWords = "docker",
    workspace: Annotated[Workspace, Without(("inventory",))],
) -> Exit:
    """Check images before a build: pins exist, the base's packages stay, flags are known."""
    from ..flow.image_check import check
    from ..flow.image_flags import strange_flags
    from ..flow.image_open import engine_here, folders_of, index_of, inventory_if_any
    from ..report.image import findings_view

    known, codes = inventory_if_any(inventory), [Exit.DONE]
    place = ImagePlace(images=images, engine=engine, on=on)
    workspace = replace(workspace, inventory=inventory)
    for folder in folders_of(images, name):
        known_as = folder.recipe.name
        flags = strange_flags(known, known_as) if known else {}
        findings = check(
            folder, index=index_of(packages), flags=flags, engine=engine_here(engine),
            listen=screen.tell,
        )  # fmt: skip
        screen.show(findings_view(known_as, findings))
        screen.emit({"schema": "bringup.image-check/1", "image": known_as, "findings": findings})
        codes += [Exit.BLOCKED for finding in findings if finding.level.value == "block"]
        if built:
            _ask_built(screen, folder, place, workspace, known)
    return gravest(codes)


def _ask_built(
    screen: Screen,
    folder: ImageFolder,
    place: ImagePlace,
    workspace: Workspace,
    known: Inventory | None,
) -> None:
    """Ask the built image every question of its gate, and show what it answers."""
    from ..flow.image_flags import rendered_flags
    from ..flow.image_gate import GateFailed, gate
    from ..flow.image_open import opened

    name = folder.recipe.name
    with opened(place, workspace, screen.tell) as yard:
        asked = rendered_flags(known, name) if known else ()
        try:
            report = gate(
                folder, yard.builder, folder.recipe.reference, flags=asked, listen=screen.tell
            )
        except GateFailed as failure:
            _tell_gate(screen, name, failure.report)
            raise
    _tell_gate(screen, name, report)


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
    building: Building,
    workspace: Annotated[Workspace, Without(("inventory",))],
) -> Exit:
    """Build an image where its inputs changed, gate it, and let its name stand for it.

    Unchanged inputs build nothing. A failing gate leaves the name with the old image. With
    --check: exit 5 where a build is needed, 0 where not.
    """
    from ..flow.image import build, foresee
    from ..flow.image_gate import GateFailed
    from ..flow.image_open import folder_of, opened, order_for

    folder = folder_of(images, name)
    place = ImagePlace(images=images, engine=engine, on=on)
    with opened(place, replace(workspace, inventory=inventory), screen.tell) as yard:
        if check:
            return _tell_foreseen(screen, folder, *foresee(folder, yard.builder))
        order = order_for(yard, folder, building, inventory=inventory, listen=screen.tell)
        try:
            done = build(folder, order)
        except GateFailed as failure:
            _tell_gate(screen, name, failure.report)
            raise
    _tell_built(screen, name, done)
    return Exit.DONE


def _tell_built(screen: Screen, name: str, done: Built) -> None:
    from ..report.image import built_view

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


def _tell_foreseen(
    screen: Screen, folder: ImageFolder, needed: bool, why: str, different: tuple[InputChange, ...]
) -> Exit:
    from ..report.image import changes_view

    screen.show(changes_view(folder.recipe.reference, why, different))
    screen.emit(
        {
            "schema": "bringup.image-diff/1", "image": folder.recipe.name, "build": needed,
            "why": why, "changes": different,
        }
    )  # fmt: skip
    return Exit.WOULD_CHANGE if needed else Exit.DONE


def image_diff(
    screen: Screen,
    name: Name,
    *,
    place: ImagePlace,
    workspace: BareWorkspace,
) -> Exit:
    """Show which inputs differ from the image that is there. Exit 5 where some do."""
    return image_build(
        screen, name, check=True, images=place.images, engine=place.engine, on=place.on,
        inventory=workspace.inventory, building=Building(), workspace=workspace,
    )  # fmt: skip


def image_history(
    screen: Screen,
    name: Name,
    *,
    place: ImagePlace,
    workspace: Workspace,
) -> Exit:
    """List the builds of an image that are on record here, newest first.

    ``current`` of --json is the ID that the name stands for: "" for none, null where the engine
    did not say (``why``).
    """
    from ..core.reading import Unknown, value_of
    from ..flow.image_open import folder_of, opened
    from ..report.image import history_view

    reference = folder_of(place.images, name).recipe.reference
    with opened(place, workspace, screen.tell) as yard:
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
