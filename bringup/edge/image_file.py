"""Image folders on disk: `image.yml` checked word by word, its patches, its Dockerfile.

Every fault of a folder is reported at once, as ``images/NAME/image.yml:LINE: key: what``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pydantic

from ..core.errors import InventoryError, Problem, UsageError
from ..core.host import Origin, Scalar
from ..core.nearest import did_you_mean
from ..image import recipe as model
from ..image.context import Context, context, patch_files
from ..image.gate import CHECKS, value_fault
from ..image.pins import Pin, normal, parse_pin
from ..image.unified import PatchError, parse
from . import yaml_marks
from .dockerfile import TemplateFault, render
from .image_words import ImageWords, PatchWords, plainly

INSIDE = ("edge/inside/install.py", "edge/inside/patch.py", "image/unified.py")
"""Programs of this package that the build runs inside the image, copied as they are."""

GATE = ("edge/inside/gate.py", "edge/inside/walk.py", "edge/inside/install.py")
"""Programs that ask the built image; they travel with the question, not in the image."""

PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """One image folder, read: its recipe, template and patch files."""

    folder: Path
    recipe: model.Recipe
    template: str
    patches: Mapping[str, bytes] = field(repr=False)

    def dockerfile(self, *, wheels: bool = False, buildkit: bool = False) -> bytes:
        """Return the Dockerfile's text for a build; the identity takes it without both."""
        return render(self.template, self.recipe, wheels=wheels, buildkit=buildkit).encode()

    @property
    def context(self) -> Context:
        return context(self.recipe, self.dockerfile(), self.patches, library())


def library() -> dict[str, bytes]:
    """Return the programs that run inside the image, by their path in the package."""
    return {name: (PACKAGE / name).read_bytes() for name in INSIDE}


def read_image(folder: Path) -> ImageFolder:
    """Read an image folder; raises InventoryError with every fault, UsageError if it is none."""
    if not (folder / "image.yml").is_file():
        known = sorted(path.parent.name for path in folder.parent.glob("*/image.yml"))
        raise UsageError(
            f"cannot read image {folder.name!r}: {folder}/image.yml is not there"
            + did_you_mean(folder.name, known),
            remedy=f"name one of: {', '.join(known)}" if known else "make the folder first",
        )
    reading = _Reading(folder, yaml_marks.read((folder / "image.yml").read_bytes(), _shown(folder)))
    found = reading.whole()
    if reading.problems or found is None:
        raise InventoryError(
            tuple(sorted(reading.problems)),
            remedy="docs/images.md explains every key",
            what=f"image {folder.name}",
        )
    return found


def read_images(folder: Path) -> tuple[ImageFolder, ...]:
    """Read every image folder below a folder, by name."""
    return tuple(read_image(path.parent) for path in sorted(folder.glob("*/image.yml")))


def _shown(folder: Path) -> str:
    return "/".join((*folder.parts[-2:], "image.yml"))


@dataclass(slots=True)
class _Reading:
    """Collects the faults of one folder while its parts are read."""

    folder: Path
    document: yaml_marks.Document
    problems: list[Problem] = field(default_factory=list)

    def fault(self, path: yaml_marks.Path, message: str) -> None:
        self.problems.append(self.document.problem(path, message))

    def origin(self, *path: str | int) -> Origin:
        key = "/".join(map(str, path))
        return Origin(self.document.file, self.document.line(path), key)

    def whole(self) -> ImageFolder | None:
        self.problems += self.document.problems
        words = self.words() if not self.problems else None
        template = self.text("Dockerfile.j2", ())
        if words is None or template is None:
            return None
        recipe = self.recipe(words)
        self.check_template(template, recipe)
        patches = {name: (self.folder / "patches" / name) for name in patch_files(recipe)}
        self.check_patches(recipe)
        bodies = {name: path.read_bytes() for name, path in patches.items() if path.is_file()}
        return ImageFolder(self.folder, recipe, template, bodies)

    def check_template(self, template: str, recipe: model.Recipe) -> None:
        """Render it once, so that a fault in it is told with the others."""
        file = f"{self.document.file.rpartition('/')[0]}/Dockerfile.j2"
        try:
            text = render(template, recipe, wheels=False, buildkit=False)
        except TemplateFault as error:
            self.problems.append(Problem(file, error.line, "", error.why))
            return
        words = [line.split() for line in text.splitlines()]
        froms = [line for line in words if line[:1] and line[0].upper() == "FROM"]
        if not any(recipe.base.pinned in line for line in froms):
            said = "has no line FROM {{ image.base.pinned }}: the base would not be the one held"
            self.problems.append(Problem(file, 0, "", said))

    def words(self) -> ImageWords | None:
        try:
            return ImageWords.model_validate(self.document.data)
        except pydantic.ValidationError as error:
            for fault in error.errors(include_url=False):
                path = tuple(part for part in fault["loc"] if part != "[key]")
                self.fault(path, plainly(fault["type"], fault["msg"], path, fault["input"]))
            return None

    def text(self, name: str, path: yaml_marks.Path) -> str | None:
        """Return a file of the folder, or note that it cannot be read."""
        try:
            return (self.folder / name).read_text()
        except OSError as error:
            self.fault(path, f"cannot read {name}: {error.strerror}")
        except UnicodeDecodeError:
            self.fault(path, f"cannot read {name}: it is no text in UTF-8")
        return None

    def recipe(self, words: ImageWords) -> model.Recipe:
        if words.name != self.folder.name:
            self.fault(("name",), f"{words.name!r} should be the folder's name, {self.folder.name}")
        pins = tuple(self.pins(words.packages))
        return model.Recipe(
            name=words.name,
            tag=words.tag,
            base=model.Base(words.base.reference, words.base.digest or "", self.origin("base")),
            engine=model.EngineInside(
                normal(words.engine.name), words.engine.version, words.engine.path,
                self.origin("engine"),
            ),
            packages=pins,
            no_deps=tuple(self.no_deps(words.no_deps, pins)),
            constraints=tuple(self.pin_file(words.constraints, ("constraints",)).values()),
            base_packages=self.base_packages(words),
            patches=tuple(self.patch(i, patch) for i, patch in enumerate(words.patches)),
            labels=words.labels,
            provides=words.provides,
            gate=tuple(filter(None, (self.step(i, s) for i, s in enumerate(words.gate)))),
            arguments=words.arguments,
            python=words.python,
            platforms=tuple(words.platforms),
            origin=self.origin(),
        )  # fmt: skip

    def pins(self, lines: list[str]) -> Iterator[Pin]:
        seen: set[str] = set()
        for number, line in enumerate(lines):
            pin = parse_pin(line, self.origin("packages", number))
            if pin is None:
                self.fault(("packages", number), f"{line!r} should be an exact pin: name==version")
            elif pin.name in seen:
                self.fault(("packages", number), f"{pin.name} is pinned above already")
            else:
                seen.add(pin.name)
                yield pin

    def no_deps(self, names: list[str], pins: tuple[Pin, ...]) -> Iterator[str]:
        pinned = [pin.name for pin in pins]
        for number, name in enumerate(names):
            if normal(name) not in pinned:
                hint = did_you_mean(normal(name), pinned)
                self.fault(("no_deps", number), f"{name!r} is none of the packages above{hint}")
            yield normal(name)

    def base_packages(self, words: ImageWords) -> dict[str, str] | None:
        if words.base.packages is None:
            return None
        found = self.pin_file(words.base.packages, ("base", "packages"))
        return {name: pin.version for name, pin in found.items()}

    def pin_file(self, name: str | None, path: yaml_marks.Path) -> dict[str, Pin]:
        """Return the pins in a file of ``name==version`` lines; ``#`` starts a comment."""
        pins: dict[str, Pin] = {}
        text = self.text(name, path) if name else ""
        for number, line in enumerate((text or "").splitlines(), start=1):
            words = line.partition("#")[0].strip()
            file = f"{self.document.file.rpartition('/')[0]}/{name}"
            pin = parse_pin(words, Origin(file, number))
            if pin is not None and pin.name in pins:
                self.problems.append(
                    Problem(file, number, "", f"{pin.name} is pinned above already")
                )
            elif pin is not None:
                pins[pin.name] = pin
            elif words:
                self.problems.append(Problem(file, number, "", f"{words!r} is no name==version"))
        return pins

    def patch(self, number: int, words: PatchWords) -> model.Patch:
        if (words.overlay is None) == (words.diff is None):
            self.fault(("patches", number), "should have one of overlay and diff")
        kind = model.PatchKind.DIFF if words.diff else model.PatchKind.OVERLAY
        return model.Patch(
            kind, words.diff or words.overlay or "", words.onto, words.reason, words.link,
            words.replaces, self.origin("patches", number),
        )  # fmt: skip

    def check_patches(self, recipe: model.Recipe) -> None:
        taken: dict[str, int] = {}
        for number, patch in enumerate(recipe.patches):
            for name in sorted(patch.replaces):
                first = taken.setdefault(f"{patch.onto}/{name}", number)
                if first != number:
                    said = f"patches/{first} changes this file already: make one patch of both"
                    self.fault(("patches", number, "replaces", name), said)
            check = self.check_diff if patch.kind is model.PatchKind.DIFF else self.check_overlay
            check(("patches", number), patch)

    def check_overlay(self, path: yaml_marks.Path, patch: model.Patch) -> None:
        """Every file of the tree needs its sum, and every sum its file."""
        tree = self.folder / "patches" / patch.source
        there = {str(f.relative_to(tree)) for f in sorted(tree.rglob("*")) if f.is_file()}
        for name in sorted(there - set(patch.replaces)):
            self.fault(
                (*path, "replaces"),
                f"{name} is missing: give the sha256 of the file it replaces, or 'new'",
            )
        for name in sorted(set(patch.replaces) - there):
            self.fault((*path, "replaces", name), f"patches/{patch.source}/{name} is not there")

    def check_diff(self, path: yaml_marks.Path, patch: model.Patch) -> None:
        text = self.text(f"patches/{patch.source}", (*path, "diff"))
        try:
            diffs = parse(text) if text is not None else ()
        except PatchError as error:
            return self.fault((*path, "diff"), f"patches/{patch.source}: {error}")
        for diff in diffs:
            if not diff.new:
                said = f"patches/{patch.source} deletes {diff.path}: patches change or add files"
                self.fault((*path, "diff"), said)
        changed = {diff.path for diff in diffs}
        for name in sorted(changed ^ set(patch.replaces)) if text is not None else ():
            missing = "its sha256 is missing" if name in changed else "the diff does not change it"
            self.fault((*path, "replaces"), f"{name}: {missing}")
        return None

    def step(self, number: int, words: dict[str, object]) -> model.GateStep | None:
        values = dict(words)
        check, gpu = values.pop("check", ""), values.pop("gpu", False)
        path: yaml_marks.Path = ("gate", number)
        if check not in CHECKS:
            self.fault(path, f"check {check!r} is unknown{did_you_mean(str(check), CHECKS)}")
            return None
        for key in sorted(set(values) ^ set(CHECKS[str(check)])):
            said = "is not a value of" if key in values else "is missing for"
            self.fault((*path, key), f"{key} {said} check {check}")
            return None
        for key, value in values.items():
            if wrong := value_fault(key, value):
                self.fault((*path, key), wrong)
        if not isinstance(gpu, bool):
            self.fault((*path, "gpu"), "should be true or false")
        typed = {key: _gate_value(value) for key, value in values.items()}
        return model.GateStep(str(check), typed, gpu is True, self.origin("gate", number))


def _gate_value(value: object) -> Scalar | tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return value if isinstance(value, str | int | float | bool) else str(value)
