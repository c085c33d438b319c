"""Images from folder to name: the static gate, the build, the gate inside, the record.

Nothing moves the name that hosts run before every check has passed.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import CommandFailed
from ..core.event import Event, Listen, ignore
from ..core.reading import Absent, Known, Unknown
from ..edge.engine import Builder, Engine
from ..edge.image_file import ImageFolder
from ..edge.image_store import ImageStore
from ..edge.pip import Index, target_of
from ..image.context import GATE_LABEL, INPUTS_LABEL, LABEL, Context, InputChange, archive, changes
from ..image.facts import ImageFacts
from ..image.failure import explain
from ..image.gate import GateReport
from ..image.record import Record, kept_name
from .image_check import Flags, check, refuse, told
from .image_gate import gate


@dataclass(frozen=True, slots=True)
class Built:
    """How a build came out. `record` None: nothing was built, `why` says why that was right."""

    image: ImageFacts
    reference: str
    why: str
    record: Record | None = None
    report: GateReport | None = None


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What a build needs beside the image: where, from which index, and who asks."""

    engine: Engine
    index: Index
    store: ImageStore
    moment: Callable[[], str]  # ISO 8601, UTC
    operator: str
    builder: Builder | None = None  # None: the best that is there
    fetch_wheels: bool = False  # download wheels here, so that the build needs no network
    network: str = ""
    force: bool = False
    flags: Flags | None = None
    rendered_flags: tuple[str, ...] = ()  # of the scripts that will run in this image
    seconds: int = 7200
    listen: Listen = ignore


def foresee(image: ImageFolder, engine: Engine) -> tuple[bool, str, tuple[InputChange, ...]]:
    """Return whether a build is needed, why, and which inputs differ from the image that is there.

    Raises Blocked when the engine does not answer.
    """
    context = image.context
    match engine.image(image.recipe.reference):
        case Known(value=there):
            return _compare(context, there)
        case Absent():
            return True, f"{image.recipe.reference} is not there yet", ()
        case Unknown() as silent:
            raise engine.silent(f"cannot look for {image.recipe.reference}", silent)


def _compare(context: Context, there: ImageFacts) -> tuple[bool, str, tuple[InputChange, ...]]:
    found = there.labels.get(LABEL, "")
    if found == context.digest:
        return False, f"same, because context {context.digest[:19]} is already there", ()
    if not found:
        return True, f"{there.short} was not built here: it has no {LABEL} label", ()
    try:
        before = json.loads(there.labels.get(INPUTS_LABEL, "{}"))
    except ValueError:
        before = {}
    different = changes(before, context.inputs)
    return True, f"{len(different)} inputs changed", different


def build(image: ImageFolder, order: BuildOrder) -> Built:
    """Build an image, gate it and give it its name; or say why there is nothing to do.

    Raises Blocked for what the static gate refuses, CommandFailed when the build fails,
    VerifyFailed when the gate inside does. The name of the old image moves last of all.
    """
    needed, why, _ = foresee(image, order.engine)
    if not needed and not order.force:
        return _unchanged(image, order, why)
    why = why if needed else "it was asked for, although nothing changed"
    findings = check(
        image, index=order.index, flags=order.flags, engine=order.engine, listen=order.listen
    )
    refuse(image.recipe.name, findings)
    started, began = order.moment(), time.monotonic()
    log = order.store.log(image.recipe.name, started)
    staging = f"{image.recipe.name}:building-{image.context.digest[7:19]}"
    try:
        _run_build(image, order, staging, log)
        tell = _keeping(log, order)
        report = gate(image, order.engine, staging, flags=order.rendered_flags, listen=tell)
        facts = _stamp(image, order, staging, report)
        _name(image, order, facts)
    finally:
        order.engine.untag(staging)
    record = replace(
        _record(image, order, facts, report),
        findings=told(findings),
        seconds=round(time.monotonic() - began, 1),
        at=started,
        log=str(log),
    )
    order.store.save(record)
    return Built(facts, image.recipe.reference, why, record, report)


def _unchanged(image: ImageFolder, order: BuildOrder, why: str) -> Built:
    """Nothing to build; a gate that asks anew is asked, and its answer is the outcome."""
    reference = image.recipe.reference
    there = order.engine.image(reference)
    assert isinstance(there, Known)
    if there.value.labels.get(GATE_LABEL) == image.context.gate:
        return Built(there.value, reference, why)
    report = gate(image, order.engine, reference, flags=order.rendered_flags, listen=order.listen)
    return Built(there.value, reference, f"{why}; the gate changed and passed", None, report)


def _run_build(image: ImageFolder, order: BuildOrder, tag: str, log: Path) -> None:
    """Send the context and follow the log; raises CommandFailed with the failing step's words."""
    builder = order.builder or order.engine.builder()
    context = image.context
    order.listen(Event(order.engine.name, "build", f"{tag} by {builder.value}"))
    with log.open("w") as file, _files(image, order, builder) as files:
        result = order.engine.build(
            archive(files),
            tag=tag,
            labels={LABEL: context.digest, INPUTS_LABEL: json.dumps(context.inputs)},
            arguments=image.recipe.arguments,
            builder=builder,
            network=order.network,
            cache_from=image.recipe.reference,
            seconds=order.seconds,
            on_line=_follow(file.write, order),
        )
    if result.exit != 0:
        raise _failure(image, order, result.exit, log.read_text() or result.tail(20), log)


def _failure(
    image: ImageFolder, order: BuildOrder, code: int, words: str, log: Path
) -> CommandFailed:
    recipe = image.recipe
    failure = explain(words, name=recipe.name, base=recipe.base.pinned)
    return CommandFailed(
        failure.cannot or f"cannot build {recipe.reference}: exit {code}",
        ran=f"{' '.join(order.engine.words)} build",
        exit_code=code,
        host=order.engine.name,
        step=f"image {recipe.name}",
        said=failure.said,
        remedy=f"{failure.remedy}; the whole log is {log}",
    )


def _follow(write: Callable[[str], object], order: BuildOrder) -> Callable[[str], None]:
    def line(text: str) -> None:
        write(text + "\n")
        if text.strip() and "sha256:" not in text:
            order.listen(Event(order.engine.name, "build", text))

    return line


def _keeping(log: Path, order: BuildOrder) -> Listen:
    """Return a listener that keeps the gate's answers in the build's log as well."""

    def tell(event: Event) -> None:
        with log.open("a") as file:
            file.write(f"{event.stage}  {event.text}\n")
        order.listen(event)

    return tell


@contextlib.contextmanager
def _files(image: ImageFolder, order: BuildOrder, builder: Builder) -> Iterator[dict[str, bytes]]:
    """Give the files to send: the context, and wheels beside it where they were fetched."""
    files = dict(image.context.files)
    if not order.fetch_wheels:
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        fetch(image, order.index, Path(folder), listen=order.listen)
        wheels = {f"wheels/{p.name}": p.read_bytes() for p in sorted(Path(folder).iterdir())}
        modern = builder is not Builder.CLASSIC
        yield {**files, "Dockerfile": image.dockerfile(wheels=True, buildkit=modern), **wheels}


def fetch(image: ImageFolder, index: Index, folder: Path, *, listen: Listen = ignore) -> None:
    """Download every wheel that the build will ask for; raises CommandFailed."""

    def tell(line: str) -> None:
        if line.lstrip().startswith("Downloading"):
            listen(Event("controller", "fetch", line.strip()))

    recipe, target = image.recipe, target_of(image.recipe)
    bare = [str(pin) for pin in recipe.packages if pin.name in recipe.no_deps]
    full = [str(pin) for pin in recipe.packages if pin.name not in recipe.no_deps]
    held = {
        **{pin.name: pin.version for pin in recipe.constraints},
        **(recipe.base_packages or {}),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("".join(f"{name}=={version}\n" for name, version in held.items()))
        constraints.flush()
        index.fetch(bare, target, folder, "--no-deps", on_line=tell)
        index.fetch(full, target, folder, "-c", constraints.name, on_line=tell)


def _stamp(image: ImageFolder, order: BuildOrder, staging: str, report: GateReport) -> ImageFacts:
    """Add the versions that the gate found as labels, in an image on top that has no layers."""
    versions = {f"bringup.version.{name}": v for name, v in report.versions.items()}
    result = order.engine.build(
        archive({"Dockerfile": f"FROM {staging}\n".encode()}),
        tag=staging,
        labels={**versions, GATE_LABEL: image.context.gate},
        arguments={},
        builder=Builder.CLASSIC if order.engine.is_docker else order.engine.builder(),
    )
    facts = order.engine.image(staging)
    if result.exit != 0 or not isinstance(facts, Known):
        raise CommandFailed(
            f"cannot label {image.recipe.reference}: exit {result.exit}",
            ran="docker build (labels)",
            exit_code=result.exit,
            said=result.tail(),
            host=order.engine.name,
        )
    return facts.value


def _name(image: ImageFolder, order: BuildOrder, facts: ImageFacts) -> None:
    """Give the image its lasting name, keep the old one's, then move the name that hosts run."""
    recipe, engine = image.recipe, order.engine
    keep_name(engine, recipe.reference)
    engine.tag(facts.id, kept_name(recipe.name, recipe.tag, facts.id))
    engine.tag(facts.id, recipe.reference)


def keep_name(engine: Engine, reference: str) -> str:
    """Make sure that the image which bears a name keeps one of its own; return it, or ""."""
    there = engine.image(reference)
    if not isinstance(there, Known):
        return ""
    name, _, tag = reference.rpartition(":")
    kept = kept_name(name, tag, there.value.id)
    if kept not in there.value.tags:
        engine.tag(there.value.id, kept)
    return kept


def _record(image: ImageFolder, order: BuildOrder, facts: ImageFacts, report: GateReport) -> Record:
    recipe = image.recipe
    base = order.engine.image(recipe.base.pinned)
    return Record(
        name=recipe.name,
        reference=recipe.reference,
        kept=kept_name(recipe.name, recipe.tag, facts.id),
        id=facts.id,
        context=image.context.digest,
        inputs=image.context.inputs,
        base=recipe.base.pinned,
        base_id=base.value.id if isinstance(base, Known) else "",
        base_digests=base.value.digests if isinstance(base, Known) else (),
        engine_version=report.versions.get(recipe.engine.name, ""),
        versions=report.versions,
        gate=tuple(
            {"check": a.check, "status": a.status.value, "says": a.says} for a in report.answers
        ),
        builder=(order.builder or order.engine.builder()).value,
        where=order.engine.name,
        by=order.operator,
        pins=tuple(str(pin) for pin in recipe.packages),
    )
