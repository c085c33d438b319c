"""What differs between two sets of facts about one host: generic, path by path.

Words for people come from a table of phrases (`probes.phrases`); a path without one is told as it
is. Fields that change by themselves are left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .facts import Facts
from .reading import Absent, Known, Unknown

KEYS = ("name", "bus_id", "path", "endpoint", "id", "pid", "port", "index")
"""Fields by which items of a list may be known again; the first that tells them apart counts.

Items that are numbered carry the name of their model, so their place on the bus counts instead:
when one of eight is lost, the others get new numbers.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `path` is e.g. ``InfiniBand.devices[mlx5_4].state``."""

    path: str
    old: str
    new: str
    words: str = ""

    def __str__(self) -> str:
        return self.words or f"{self.path}: {self.old or 'nothing'} → {self.new or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words for the changes whose path a pattern matches. `say` gets the groups, old and new."""

    pattern: str
    say: Callable[[tuple[str, ...], str, str], str]


def differences(
    old: Facts,
    new: Facts,
    *,
    phrases: Iterable[Phrase] = (),
    volatile: Collection[type] = (),
    ignored: Collection[str] = (),
) -> tuple[Change, ...]:
    """Return what changed, by path. Facts that either side was not asked for are left out.

    `volatile` are types, `ignored` names of fields, that change by themselves.
    """
    kinds = sorted(set(old.readings) & set(new.readings), key=lambda kind: kind.__name__)
    table = tuple(phrases)
    found = [
        _worded(change, table)
        for kind in kinds
        if kind not in volatile
        for change in _of(kind.__name__, old.readings[kind], new.readings[kind], ignored)
    ]
    return tuple(found)


def alike(changes: Iterable[Change]) -> tuple[tuple[Change, ...], ...]:
    """Return changes in groups that differ only in which item it was: eight GPUs, one line."""
    groups: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        shape = re.sub(r"\[[^]]*\]", "[]", change.path)
        groups.setdefault((shape, change.old, change.new), []).append(change)
    return tuple(tuple(group) for group in groups.values())


def _of(name: str, old: object, new: object, ignored: Collection[str]) -> Iterator[Change]:
    if isinstance(old, Known) and isinstance(new, Known):
        before, after = (
            dict(_leaves(name, old.value, ignored)),
            dict(_leaves(name, new.value, ignored)),
        )
        yield from _whole(before, after)
    elif type(old) is not type(new):
        yield Change(name, _state(old), _state(new))


def _state(reading: object) -> str:
    """Return a reading that is not a value in words, or "there" for one."""
    match reading:
        case Absent():
            return "absent"
        case Unknown():
            return f"unknown: {reading.why}"
    return "there"


def _whole(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    """Tell an item that came or went once, not field by field."""
    gone = _items(before) - _items(after)
    come = _items(after) - _items(before)
    for item in sorted(gone):
        yield Change(item, "there", "")
    for item in sorted(come):
        yield Change(item, "", "there")
    for path in sorted(before.keys() | after.keys()):
        if not any(path.startswith(item) for item in gone | come):
            old, new = before.get(path, ""), after.get(path, "")
            if old != new:
                yield Change(path, old, new)


def _items(leaves: Mapping[str, str]) -> set[str]:
    return {path[: path.index("]") + 1] for path in leaves if "[" in path}


def _leaves(path: str, value: object, ignored: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield every plain value below a fact with its path."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.name not in (*ignored, "evidence"):
                yield from _leaves(f"{path}.{field.name}", getattr(value, field.name), ignored)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{path}[{key}]", item, ignored)
    elif isinstance(value, tuple | list) and any(dataclasses.is_dataclass(item) for item in value):
        key = _key(value)
        for place, item in enumerate(value):
            yield from _leaves(f"{path}[{getattr(item, key, place)}]", item, ignored)
    elif isinstance(value, tuple | list | frozenset | set):
        yield path, " ".join(sorted(str(item) for item in value))
    else:
        yield path, "" if value is None else str(value)


def _key(items: Collection[object]) -> str:
    """Return the field that tells these items apart, "" where none does."""

    def tells(name: str) -> bool:
        values = [getattr(item, name, "") for item in items]
        return "" not in values and len(set(map(str, values))) == len(values)

    numbered = any(hasattr(item, "index") for item in items)
    return next((name for name in (KEYS[1:] if numbered else KEYS) if tells(name)), "")


def _worded(change: Change, phrases: tuple[Phrase, ...]) -> Change:
    for phrase in phrases:
        match = re.fullmatch(phrase.pattern, change.path)
        if match and (words := phrase.say(match.groups(), change.old, change.new)):
            return dataclasses.replace(change, words=words)
    return change
