"""The files of an inventory folder, read as documents. Looks at nothing else on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.errors import InventoryError, Problem, UsageError
from ..core.host import Image
from . import yaml_marks
from .names import NAME
from .yaml_marks import Document


@dataclass(frozen=True, slots=True)
class Files:
    """One document a file, by the name that the file gives; and files that are in the way."""

    hosts: Document
    kinds: Mapping[str, Document] = field(default_factory=dict)
    deployments: Mapping[str, Document] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def read(folder: Path) -> Files:
    """Read the files of an inventory folder; raises UsageError where there is no inventory."""
    if not folder.is_dir():
        raise UsageError(
            f"cannot find the inventory: there is no folder {folder}",
            remedy="run this in the folder that holds inventory/, or copy the one that bringup "
            "ships and edit its hosts.yml",
        )
    if not (folder / "hosts.yml").exists():
        raise UsageError(f"cannot find the inventory: no {folder}/hosts.yml", remedy=_begin(folder))
    kinds, strange_kinds = _room(folder, "kinds")
    deployments, strange_deployments = _room(folder, "deployments")
    hosts = _document(folder, folder / "hosts.yml")
    return Files(hosts, kinds, deployments, (*strange_kinds, *strange_deployments))


def read_promises(folder: Path) -> tuple[dict[str, Image], tuple[Problem, ...]]:
    """Return what each image folder promises, by name, and what is wrong with the others."""
    from .image_file import read_image

    promises: dict[str, Image] = {}
    problems: list[Problem] = []
    for path in sorted(folder.glob("*/image.yml")):
        promises[path.parent.name] = Image(path.parent.name)
        try:
            promises[path.parent.name] = read_image(path.parent).recipe.promise
        except InventoryError as error:
            problems += error.problems
    return promises, tuple(problems)


def _begin(folder: Path) -> str:
    if (folder / "hosts.yaml").exists():
        return f"mv {folder}/hosts.yaml {folder}/hosts.yml"
    return (
        f"begin {folder}/hosts.yml with one line a host under 'hosts:', as in 'hosts: {{b300-04: "
        "{address: 192.0.2.4}}'; bringup ships one with every key explained"
    )


def _room(folder: Path, room: str) -> tuple[dict[str, Document], tuple[Problem, ...]]:
    """Return the documents of one subfolder by name, and what cannot be read as one."""
    documents: dict[str, Document] = {}
    strange: list[Problem] = []
    for path in sorted((folder / room).glob("[!.]*")):
        if path.suffix in (".yaml", ".json"):
            strange.append(Problem(_label(folder, path), 0, "", "is not read: name it NAME.yml"))
        elif path.suffix == ".yml" and not NAME.fullmatch(path.stem):
            message = "should be named with letters, digits, dots and dashes"
            strange.append(Problem(_label(folder, path), 0, "", message))
        elif path.suffix == ".yml":
            documents[path.stem] = _document(folder, path)
    return documents, tuple(strange)


def _document(folder: Path, path: Path) -> Document:
    label = _label(folder, path)
    try:
        return yaml_marks.read(path.read_bytes(), label)
    except OSError as error:
        return Document(
            label, problems=(Problem(label, 0, "", f"cannot be read: {error.strerror}"),)
        )


def placed(problem: Problem, folder: Path) -> Problem:
    """Return a problem with a path that opens from the working directory."""
    room, _, rest = problem.file.partition("/")
    if room != folder.resolve().name or not (folder / rest).exists():
        return problem
    return replace(problem, file=str(folder / rest))


def _label(folder: Path, path: Path) -> str:
    """Return how messages and plans name a file: from the inventory folder on, wherever it lies."""
    return "/".join((folder.resolve().name, *path.relative_to(folder).parts))
