"""Ansible inventories as they are written: INI, YAML, and the JSON of `ansible-inventory --list`.

Reads names, groups and variables only; what the variables mean stands in `edge.ansible`.
Sources: https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html and
https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import yaml

from ..core.errors import UsageError
from .names import MOST

Variables: TypeAlias = dict[str, Any]
"""Variables by name. Any: whatever people put into them."""

ALL, UNGROUPED = "all", "ungrouped"


class Vault:
    """Stands for an encrypted value, which nobody here can or should read."""


VAULT = Vault()


@dataclass(slots=True)
class Group:
    """What one group says: its own hosts, the groups below it, and variables for all of them."""

    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    variables: Variables = field(default_factory=dict)


@dataclass(slots=True)
class Tree:
    """An Ansible inventory: groups by name, and each host's own variables."""

    groups: dict[str, Group] = field(default_factory=dict)
    hosts: dict[str, Variables] = field(default_factory=dict)

    def group(self, name: str) -> Group:
        """Return a group, made when it was not there."""
        return self.groups.setdefault(name, Group())

    def add_host(self, name: str, group: str, variables: Mapping[str, Any]) -> None:
        """Put a host into a group; what it says is added to what it said before."""
        self.hosts.setdefault(name, {}).update(variables)
        if len(self.hosts) > MOST:
            raise ValueError(f"there are more than {MOST} hosts")
        if name not in self.group(group).hosts:
            self.group(group).hosts.append(name)


def parse(text: str, name: str) -> Tree:
    """Return what an inventory says, in whichever of the three forms it is written.

    Raises UsageError, naming the line where there is one; never shows what stands there, as it
    may be a secret.
    """
    try:
        return _form(text, name)(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {name} as an Ansible inventory: {error}") from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", "")
        place = f"line {mark.line + 1}: " if mark else ""
        raise UsageError(f"cannot read {name} as an Ansible inventory: {place}{problem}") from error


def _form(text: str, name: str) -> Callable[[str], Tree]:
    if text.lstrip().startswith("{"):
        return from_json
    lines = (line.rstrip() for line in text.splitlines() if line.strip() and line[0] != "#")
    first = next(lines, "")
    looks_like_yaml = first == "---" or re.fullmatch(r"[\w-]+:", first) is not None
    return from_yaml if name.endswith((".yml", ".yaml")) or looks_like_yaml else from_ini


# JSON: {"GROUP": {"hosts": […], "children": […], "vars": {…}}, "_meta": {"hostvars": {…}}}


def from_json(text: str) -> Tree:
    """Return what `ansible-inventory --list` printed, with or without --export."""
    data = json.loads(text)
    tree = Tree()
    for name, said in _items(data, "the file"):
        if name != "_meta":
            _add_json_group(tree, name, {"hosts": said} if isinstance(said, list) else said)
    for host, said in _items(_mapping(data.get("_meta"), "_meta").get("hostvars"), "hostvars"):
        tree.hosts.setdefault(host, {}).update(_variables(said))
    return tree


def _add_json_group(tree: Tree, name: str, said: object) -> None:
    words = _mapping(said, name)
    group = tree.group(name)
    group.children += _texts(words.get("children"), f"{name}/children")
    group.variables.update(_variables(words.get("vars")))
    for host in _texts(words.get("hosts"), f"{name}/hosts"):
        tree.add_host(host, name, {})


def _mapping(value: object, what: str) -> Mapping[Any, Any]:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{what} should hold keys and values, not {type(value).__name__}")
    return value or {}


def _items(value: object, what: str) -> list[tuple[str, Any]]:
    return [(str(key), item) for key, item in _mapping(value, what).items()]


def _texts(value: object, what: str) -> list[str]:
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{what} should be a list, not {type(value).__name__}")
    return [str(item) for item in value or ()]


def _variables(said: object) -> Variables:
    """Return variables, encrypted ones marked."""
    return {
        name: VAULT if isinstance(value, dict) and "__ansible_vault" in value else value
        for name, value in _items(said, "variables")
    }


# YAML: GROUP: {hosts: {NAME: {VARIABLE: …}}, vars: {…}, children: {GROUP: …}}


class _Loader(yaml.SafeLoader):
    """Knows Ansible's own tags."""


_Loader.add_constructor("!vault", lambda *_: VAULT)
_Loader.add_constructor("!unsafe", lambda _, node: node.value)


def from_yaml(text: str) -> Tree:
    """Return what a YAML inventory says."""
    tree = Tree()
    ahead: list[tuple[str, object]] = _items(yaml.load(text, _Loader), "the file")  # noqa: S506
    seen = 0
    while ahead:
        name, said = ahead.pop(0)
        ahead += _add_yaml_group(tree, name, said)
        seen += 1
        if seen > MOST:
            raise ValueError(f"there are more than {MOST} groups, or a group holds itself")
    return tree


def _add_yaml_group(tree: Tree, name: str, said: object) -> list[tuple[str, object]]:
    """Add one group, and return the groups below it."""
    words = _mapping(said, name)
    group = tree.group(name)
    group.variables.update(_variables(words.get("vars")))
    for pattern, own in _items(words.get("hosts"), f"{name}/hosts"):
        for host in expand(pattern):
            tree.add_host(host, name, _variables(own))
    below = _items(words.get("children"), f"{name}/children")
    group.children += [child for child, _ in below if child not in group.children]
    return below


# INI: [GROUP], [GROUP:vars], [GROUP:children]; a host a line with its variables behind it

_SECTION = re.compile(r"\[(?P<group>[^:\]]+)(?::(?P<kind>\w+))?\]\s*(?:[#;].*)?")
_HOST = re.compile(r"(?P<name>(?:[^:\[\]]|\[[^\]]*\])+)(?::(?P<port>\d+))?")


def from_ini(text: str) -> Tree:
    """Return what an INI inventory says."""
    tree = Tree()
    group, kind = UNGROUPED, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith(("#", ";")):
            continue
        try:
            if section := _SECTION.fullmatch(line):
                group, kind = section["group"].strip(), section["kind"] or ""
                tree.group(group)
            else:
                _LINES[kind](tree, group, line)
        except (ValueError, KeyError) as error:
            why = f"no section kind {kind!r}" if isinstance(error, KeyError) else error
            raise ValueError(f"line {number}: {why}") from error
    return tree


def _add_host_line(tree: Tree, group: str, line: str) -> None:
    pattern, *words = shlex.split(line, comments=True)
    found = _HOST.fullmatch(pattern)
    port = {"ansible_port": int(found["port"])} if found and found["port"] else {}
    own = dict(_assigned(word) for word in words)
    for host in expand(found["name"] if found else pattern):
        tree.add_host(host, group, port | own)


def _add_variable(tree: Tree, group: str, line: str) -> None:
    tree.group(group).variables.update([_assigned(line)])


def _add_child(tree: Tree, group: str, line: str) -> None:
    child = line.partition("#")[0].strip()
    tree.group(child)
    tree.group(group).children.append(child)


_LINES: Mapping[str, Callable[[Tree, str, str], None]] = {
    "": _add_host_line,
    "vars": _add_variable,
    "children": _add_child,
}


def _assigned(text: str) -> tuple[str, Any]:
    """Return the variable that ``name=value`` sets; the value is a Python literal if it can be."""
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError("expected name=value; a value with spaces needs quotes")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name.strip(), value.strip()


def expand(pattern: str) -> list[str]:
    """Return the hosts that Ansible's ``name[01:16]``, ``name[a:c]`` or ``name[1:9:2]`` means."""
    pieces = re.split(r"\[([^\[\]]*:[^\[\]]*)\]", pattern)
    choices = [_range(piece) if place % 2 else [piece] for place, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MOST:
        raise ValueError(f"{pattern} stands for more than {MOST} hosts")
    return ["".join(parts) for parts in product(*choices)]


def _range(text: str) -> list[str]:
    first, last, step = (*text.split(":"), "1")[:3]
    first = first or "0"
    if not step.isdecimal() or int(step[:6]) == 0:
        raise ValueError(f"[{text}] is no range")
    if first.isdecimal() and last.isdecimal():
        return list(_numbers(first, last, int(step[:6])))
    if re.fullmatch(r"[A-Za-z]", first) and re.fullmatch(r"[A-Za-z]", last):
        return [chr(code) for code in range(ord(first), ord(last) + 1, int(step[:6]))]
    raise ValueError(f"[{text}] is no range")


def _numbers(first: str, last: str, step: int) -> Iterator[str]:
    if max(len(first), len(last)) > 9 or int(last) - int(first) > MOST * step:
        raise ValueError(f"[{first}:{last}] stands for more than {MOST} hosts")
    width = len(first) if first.startswith("0") else 0
    for number in range(int(first), int(last) + 1, step):
        yield str(number).zfill(width)
