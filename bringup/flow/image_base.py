"""The base of an image: hold it by its digest, and carry patches over to a new one."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import Blocked, CommandFailed
from ..core.reading import Known, Unknown
from ..edge.ask_inside import Inside, look
from ..edge.engine import Engine
from ..edge.image_file import ImageFolder
from ..edge.store import write_atomic
from ..image.rebase import Meeting, Rebased, unified
from ..image.recipe import NEW, Patch, PatchKind
from ..image.unified import PatchError, apply, parse
from .image_check import digest_of_tag

PACKAGES = "base-packages.txt"


@dataclass(frozen=True, slots=True)
class PinnedBase:
    """What a base is held to. `digest` "" with `why` when nobody could tell it."""

    reference: str
    digest: str
    why: str
    packages: dict[str, str]
    python: str
    engine_version: str


def pin(image: ImageFolder, engine: Engine) -> PinnedBase:
    """Return the digest that a base's tag stands for now, and what the base holds.

    Raises Blocked when the engine has no such image.
    """
    reference = image.recipe.base.reference
    facts = engine.image(reference)
    if isinstance(facts, Unknown):
        raise engine.silent(f"cannot pin {reference}", facts)
    if not isinstance(facts, Known):
        raise Blocked(
            f"cannot pin {reference}: it is not there",
            host=engine.name,
            remedy=f"{' '.join(engine.words)} pull {reference}, or docker load an archive of it",
        )
    digest = digest_of_tag(engine, reference)
    why = "" if digest else (
        "the engine has it from an archive, which carries no digest; pull it once from its registry"
    )  # fmt: skip
    inside = look(engine, facts.value.id, ())
    version = inside.packages.get(image.recipe.engine.name, "")
    return PinnedBase(reference, digest, why, inside.packages, inside.python, version)


def pinned_files(image: ImageFolder, pinned: PinnedBase) -> dict[Path, bytes]:
    """Return the files of an image's folder that a pin changes, as they become."""
    listed, file = image.folder / PACKAGES, image.folder / "image.yml"
    lines = [f"{name}=={version}" for name, version in sorted(pinned.packages.items())]
    head = f"# Packages of {pinned.reference} {pinned.digest}, Python {pinned.python}.\n"
    wanted = {
        file: _with_base(file.read_text(), pinned).encode(),
        listed: (head + "\n".join(lines) + "\n").encode(),
    }
    return {
        path: body
        for path, body in wanted.items()
        if not path.is_file() or path.read_bytes() != body
    }


def write_pin(image: ImageFolder, pinned: PinnedBase) -> tuple[Path, ...]:
    """Write digest and package list into the image's folder; every comment there stays."""
    changed = pinned_files(image, pinned)
    for path, body in changed.items():
        write_atomic(path, body)
    return tuple(changed)


def _with_base(text: str, pinned: PinnedBase) -> str:
    """Return an image.yml whose base has this digest and package list.

    A digest that stands there stays where nobody could tell another one.
    """
    ours = ("digest:", "packages:") if pinned.digest else ("packages:",)
    lines, out, inside = text.splitlines(), list[str](), False
    for line in lines:
        words = line.strip()
        if inside and words and not line.startswith((" ", "#")):
            inside = False
        if inside and words.startswith(ours):
            continue
        out.append(line)
        if line.startswith("base:"):
            inside = True
        elif inside and words.startswith("reference:"):
            indent = line[: len(line) - len(line.lstrip())]
            if pinned.digest:
                out.append(f"{indent}digest: {pinned.digest}")
            out.append(f"{indent}packages: {PACKAGES}")
    return "\n".join(out) + "\n"


def rebase(image: ImageFolder, engine: Engine, *, to: str) -> tuple[Rebased, ...]:
    """Return how each patched file stands to a new base: three-way, per file.

    Raises Blocked when the new base is not there.
    """
    new = _inside(image, engine, to)
    if new is None:
        raise Blocked(
            f"cannot look into {to}: the engine does not have it",
            host=engine.name,
            remedy=f"{' '.join(engine.words)} pull {to}",
        )
    old = _inside(image, engine, image.recipe.base.pinned)
    return tuple(
        file for patch in image.recipe.patches for file in _rebased(image, patch, old, new)
    )


def _inside(image: ImageFolder, engine: Engine, reference: str) -> Inside | None:
    """Return the patched files as an image has them, None when the engine has no such image."""
    names = [f"{p.onto}/{name}" for p in image.recipe.patches for name in p.replaces]
    if not isinstance(engine.image(reference), Known):
        return None
    return look(engine, reference, names, content=True)


def _rebased(
    image: ImageFolder, patch: Patch, old: Inside | None, new: Inside
) -> Iterator[Rebased]:
    for name, wanted in sorted(patch.replaces.items()):
        path = f"{patch.onto}/{name}"
        found = new.files[path]
        file = Rebased(patch.source, path, Meeting.GONE, wanted, found[0] if found else "")
        if found is None:
            yield replace(file, meeting=Meeting.SAME if wanted == NEW else Meeting.GONE)
            continue
        before = old.files[path] if old is not None else None
        if before is None or before[0] != wanted:
            same = found[0] == wanted
            yield replace(file, meeting=Meeting.SAME if same else Meeting.UNKNOWN)
            continue
        ours = _patched(image, patch, name, before[1])
        yield _meet(file, name, before[1], ours, found[1])


def _patched(image: ImageFolder, patch: Patch, name: str, before: bytes) -> bytes:
    """Return a file as the patch leaves it."""
    if patch.kind is PatchKind.OVERLAY:
        return image.patches[f"{patch.source}/{name}"]
    diffs = parse(image.patches[patch.source].decode())
    try:
        return apply(next(diff for diff in diffs if diff.path == name), before)
    except PatchError as error:
        raise Blocked(f"cannot apply patch {patch.source} to its own base: {error}") from error


def _meet(file: Rebased, name: str, before: bytes, ours: bytes, theirs: bytes) -> Rebased:
    told = replace(
        file,
        ours=unified(before, ours, name, old="base", new="patch"),
        theirs=unified(before, theirs, name, old="base", new="new-base"),
    )
    if theirs == before:
        return replace(told, meeting=Meeting.SAME, merged=ours)
    if theirs == ours:
        return replace(told, meeting=Meeting.TAKEN, merged=theirs)
    merged, clean = merge(before, ours, theirs)
    return replace(told, meeting=Meeting.MERGED if clean else Meeting.CONFLICT, merged=merged)


def merge(before: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """Return a three-way merge by git, and whether it is clean; conflicts show all three."""
    if shutil.which("git") is None:
        raise Blocked("cannot merge: git is not installed here", remedy="apt-get install git")
    with tempfile.TemporaryDirectory() as folder:
        names = ("patch", "base", "new-base")
        for name, body in zip(names, (ours, before, theirs), strict=True):
            (Path(folder) / name).write_bytes(body)
        labels = [word for name in names for word in ("-L", name)]
        words = ["git", "merge-file", "-p", "--diff3", *labels, *names]
        done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    if done.returncode < 0 or done.returncode > 127:
        raise CommandFailed(
            "cannot merge", ran=" ".join(words), exit_code=done.returncode,
            said=done.stderr.decode(errors="replace"),
        )  # fmt: skip
    return done.stdout, done.returncode == 0


def write_rebased(image: ImageFolder, files: tuple[Rebased, ...]) -> tuple[Path, ...]:
    """Write merged overlay files and the new sums; conflicts and diffs are left to a person."""
    file, written = image.folder / "image.yml", []
    text = file.read_text()
    overlays = {p.source: p for p in image.recipe.patches if p.kind is PatchKind.OVERLAY}
    for one in files:
        patch = overlays.get(one.patch)
        if patch is None or one.meeting not in (Meeting.MERGED, Meeting.SAME) or not one.merged:
            continue
        name = one.file.removeprefix(f"{patch.onto}/")
        path = image.folder / "patches" / patch.source / name
        if hashlib.sha256(path.read_bytes()).digest() != hashlib.sha256(one.merged).digest():
            write_atomic(path, one.merged)
            written.append(path)
        if one.old_sum != one.new_sum:
            text = text.replace(one.old_sum, one.new_sum)
    if text != file.read_text():
        write_atomic(file, text.encode())
        written.append(file)
    return tuple(written)
