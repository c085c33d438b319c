"""The text of a `hosts.yml` for what was carried over from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, TypeAlias

from .names import NAME, expand, fold, fold_alike
from .yaml_scalars import resolve

Settings: TypeAlias = Mapping[str, Any]
"""Our settings by key. Any: as our schema has them."""


@dataclass(frozen=True, slots=True)
class Team:
    """A group: its own hosts, the groups below it, and what it says for all of them."""

    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is carried over."""

    defaults: Settings = field(default_factory=dict)
    groups: Mapping[str, Team] = field(default_factory=dict)
    hosts: Mapping[str, Settings] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


_ORDER = (
    "groups", "hosts", "address", "port", "user", "key_file", "certificate_file", "gateway",
    "connect_s", "keepalive_s", "sudo",
)  # fmt: skip


def write(fleet: Fleet, source: str, notes: tuple[str, ...]) -> str:
    """Return the text of a `hosts.yml`."""
    head = [
        *_comment(f"Hosts of {source}, an Ansible inventory."),
        *_comment("bringup's own hosts.yml explains the keys."),
        *(_comment("Not carried over:") if notes else ()),
        *(line for note in notes for line in _comment(f"- {note}")),
    ]
    groups = {
        name: {
            "groups": list(team.groups),
            "hosts": fold(team.hosts),
            **team.settings,
        }
        for name, team in fleet.groups.items()
    }
    parts = {"defaults": fleet.defaults, "groups": groups, "hosts": dict(_folded(fleet.hosts))}
    body = [
        line for name, part in parts.items() if part for line in ("", f"{name}:", *_lines(part))
    ]
    return "\n".join([*head, *body]) + "\n"


def _comment(text: str) -> list[str]:
    """Return text as comment lines that no terminal of 80 columns breaks."""
    return wrap(text, 78, initial_indent="# ", subsequent_indent="#   ")


def _lines(part: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    for key, value in sorted(part.items(), key=_place):
        if isinstance(value, Mapping):
            yield f"{indent}{_word(key)}:"
            yield from _lines(value, indent + "  ")
        elif value not in ([], ""):
            yield f"{indent}{_word(key)}: {_value(value)}"


def _place(pair: tuple[str, Any]) -> int:
    return _ORDER.index(pair[0]) if pair[0] in _ORDER else -1


def _value(value: Any) -> str:  # noqa: ANN401 - a setting
    if isinstance(value, list):
        words = [_word(item) if NAME.fullmatch(item) else json.dumps(item) for item in value]
        return _word(value[0]) if len(value) == 1 else f"[{', '.join(words)}]"
    return _word(value) if isinstance(value, str) else json.dumps(value)


def _word(text: str) -> str:
    """Return text bare where every reader takes it for text, else quoted."""
    bare = re.fullmatch(r"[A-Za-z0-9_/~.][\w./~@:,\[\]+-]*", text) and not text.endswith(":")
    return text if bare and resolve(text) == (text, "") else json.dumps(text, ensure_ascii=False)


def _folded(hosts: Mapping[str, Settings]) -> Iterator[tuple[str, Settings]]:
    """Yield hosts, those under one folded name that are alike but for their address."""
    alike: dict[str, list[str]] = {}
    for host, said in hosts.items():
        rest = {key: value for key, value in said.items() if key != "address"}
        key = json.dumps([rest, "address" in said], sort_keys=True)
        alike.setdefault(key, []).append(host)
    for names in alike.values():
        for pattern in fold_alike(names):
            yield from _entry(pattern, hosts)


def _entry(pattern: str, hosts: Mapping[str, Settings]) -> Iterator[tuple[str, Settings]]:
    """Yield one entry for a folded name where its addresses fold alike, else one for each host."""
    names = expand(pattern)
    addresses = tuple(hosts[name].get("address", "") for name in names)
    if len(names) == 1 or not any(addresses):
        yield pattern, hosts[names[0]]
        return
    folded = fold_alike(addresses)
    if len(folded) == 1 and _march(names, addresses):
        yield pattern, {**hosts[names[0]], "address": folded[0]}
        return
    yield from ((name, hosts[name]) for name in names)


def _march(names: tuple[str, ...], addresses: tuple[str, ...]) -> bool:
    """Return whether names and addresses count alike, so that a reader sees which is whose."""
    pairs = zip(names, addresses, strict=True)
    ends = [re.search(r"(\d+)\D*$", text) for pair in pairs for text in pair]
    numbers = [int(end[1]) if end else -1 for end in ends]
    gaps = {address - name for name, address in zip(numbers[::2], numbers[1::2], strict=True)}
    return len(gaps) == 1 and not any(":" in address for address in addresses)
