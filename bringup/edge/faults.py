"""What is wrong with a document, said for people: pydantic's errors in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..core.errors import Problem
from ..core.nearest import did_you_mean
from .forms import shown
from .schema import HostEntry, known_keys
from .yaml_marks import Document, Path
from .yaml_scalars import resolve

NO_VALUE = "has no value: give one, or take the key out"

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Checked(Generic[M]):
    """A document and what could be made of it: faulty keys are reported and left out."""

    document: Document
    entry: M
    problems: tuple[Problem, ...]


def check(document: Document, model: type[M], may_be_empty: Callable[[Path], bool]) -> Checked[M]:
    """Return a document as a model, with all that is wrong with it.

    What is wrong is cut out and the rest is kept, so that later checks can say more in one go.
    """
    empty = [path for path in _empty_paths(document.data, ()) if not may_be_empty(path)]
    said = _cut(document.data, [path for path in empty if isinstance(path[-1], str)])
    entry, found = _fitted(document, model, said)
    missing = [document.problem(path, NO_VALUE) for path in empty]
    return Checked(document, entry, merged(document.problems, (*found, *missing)))


def _fitted(document: Document, model: type[M], said: object) -> tuple[M, list[Problem]]:
    """Return as much of what was said as fits the model, and what did not fit."""
    if not isinstance(said, dict):
        return model(), [] if document.problems else [_no_mapping(document)]
    found: list[Problem] = []
    while True:
        try:
            return model.model_validate(said), found
        except ValidationError as error:
            faults = [(document.known(tuple(each["loc"])), {**each}) for each in error.errors()]
            fresh = [_problem(document, model, path, each) for path, each in faults]
            found += [problem for problem in fresh if not any(_covers(problem, f) for f in found)]
            said = _cut(said, [path for path, _ in faults])


def merged(first: tuple[Problem, ...], more: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return problems in order, leaving out later ones at a key that already has one, or below."""
    kept = list(first)
    for problem in more:
        if not any(_covers(other, problem) for other in kept):
            kept.append(problem)
    return tuple(sorted(kept))


def _covers(one: Problem, other: Problem) -> bool:
    if one.file != other.file or not one.key:
        return one == other
    return one.key == other.key or other.key.startswith(f"{one.key}/")


def _no_mapping(document: Document) -> Problem:
    if document.data is None:
        return Problem(document.file, 1, "", "is empty: begin with the shipped example")
    return document.problem((), f"should hold keys (key: value), not {shown(document.data)}")


def _empty_paths(value: object, path: Path) -> Iterator[Path]:
    """Yield the paths of keys and list items without a value."""
    pairs = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in (*pairs, *items):
        if item is None:
            yield (*path, key)
        else:
            yield from _empty_paths(item, (*path, key))


def _cut(data: object, paths: Iterable[Path]) -> object:
    """Return data without the values at these paths; the last goes first, as places shift."""
    for path in reversed([*paths]):
        data = _without(data, path)
    return data


def _without(data: object, path: Path) -> object:
    """Return data without the value at a path; the rest is shared."""
    if not path:
        return {}
    head, *rest = path
    if isinstance(data, list) and isinstance(head, int) and head < len(data):
        inner = [_without(data[head], tuple(rest))] if rest else []
        return [*data[:head], *inner, *data[head + 1 :]]
    if isinstance(data, dict) and head in data:
        inner_map = {head: _without(data[head], tuple(rest))} if rest else {}
        return {key: inner_map.get(key, item) for key, item in data.items() if rest or key != head}
    return {}


_WANTED: Mapping[str, str] = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
}


def _problem(
    document: Document,
    model: type[BaseModel],
    path: Path,
    error: Mapping[str, Any],
) -> Problem:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if value is None:
        message = NO_VALUE
    elif kind == "extra_forbidden":
        message = _unknown_key(model, path)
    elif kind == "value_error":
        message = str(context["error"])
    elif kind in _WANTED:
        found = _found(document, path, value)
        message = f"should be {_WANTED[kind]}, not {found}{_cure(kind, found, value)}"
    elif kind == "too_short":
        message = "is empty"
    else:
        message = f"should be {_bounds(kind, context)}, not {shown(value)}"
    return document.problem(path, message)


def _unknown_key(model: type[BaseModel], path: Path) -> str:
    name = str(path[-1])
    if name in HostEntry.model_fields and path[0] in ("defaults", "groups"):
        return "tells one host from another: it stands under hosts only"
    return f"unknown key{did_you_mean(name, known_keys(model, path))}"


def _found(document: Document, path: Path, value: object) -> str:
    """Return the offending value as it is written."""
    raw = document.marks[path].raw if path in document.marks else ""
    return raw if raw and not isinstance(value, str) else shown(value)


def _cure(kind: str, found: str, value: object) -> str:
    """Return which quotes are missing, or too many."""
    if kind == "string_type" and isinstance(value, int | float):
        return f": quote it ('{found}')"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(value, str):
        bare, surprise = resolve(value)
        return ": take the quotes away" if not (surprise or isinstance(bare, str)) else ""
    return ""


def _bounds(kind: str, context: Mapping[str, float]) -> str:
    signs = {
        "greater_than_equal": ("at least", "ge"),
        "greater_than": ("more than", "gt"),
        "less_than_equal": ("at most", "le"),
    }
    words, key = signs[kind]
    return f"{words} {context[key]:g}" if context[key] < 1e6 else f"{words} {context[key]}"
