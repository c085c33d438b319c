"""What one version of one package accepts: its flags and variables, shipped as data files.

A file `schemas/PACKAGE-VERSION.json` a version; `edge.schema_source` makes one from an image's
``--help`` or from an unpacked wheel (docs/extend-engine.md).
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from ..core.version import Version, version


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `choices` () means: any value, or that nobody listed them."""

    name: str
    takes_value: bool = True
    choices: tuple[str, ...] = ()
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """All that a version of a package accepts. `variables` None: the source does not list them."""

    package: str
    version: str
    flags: Mapping[str, Flag]
    variables: frozenset[str] | None = None
    source: str = ""

    @property
    def key(self) -> Version:
        return version(self.version) or Version(())


def parse(text: str) -> Schema:
    """Return the schema in a file's text. Raises ValueError where it is none."""
    data = json.loads(text)
    deprecated = set(" ".join(data.get("deprecated", ())).split())
    flags = {
        name: Flag(
            name,
            takes_value=form != "switch",
            choices=tuple(form) if isinstance(form, list) else (),
            deprecated=name in deprecated,
        )
        for name, form in data["flags"].items()
    }
    variables = data.get("variables")
    return Schema(
        data["package"],
        data["version"],
        flags,
        None if variables is None else frozenset(" ".join(variables).split()),
        data.get("source", ""),
    )


def dump(schema: Schema) -> str:
    """Return a schema as its file's text: a flag a line, variables wrapped, all sorted."""
    flags = [
        f"    {json.dumps(name)}: {json.dumps(_form(flag))}"
        for name, flag in sorted(schema.flags.items())
    ]
    parts = [
        f'  "package": {json.dumps(schema.package)}',
        f'  "version": {json.dumps(schema.version)}',
        f'  "source": {json.dumps(schema.source)}',
        '  "flags": {\n' + ",\n".join(flags) + "\n  }",
        f'  "deprecated": {_lines(n for n, f in schema.flags.items() if f.deprecated)}',
    ]
    if schema.variables is not None:
        parts.append(f'  "variables": {_lines(schema.variables)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _form(flag: Flag) -> str | list[str]:
    return list(flag.choices) or ("value" if flag.takes_value else "switch")


def _lines(names: Iterable[str]) -> str:
    """Return names as a list of wrapped lines, which a person can read and a diff can show."""
    wrapped = textwrap.wrap(" ".join(sorted(names)), 92, break_on_hyphens=False)
    return json.dumps(wrapped, indent=4).replace("\n]", "\n  ]")


@cache
def shipped() -> tuple[Schema, ...]:
    """Return the schemas that come with bringup, by package and version."""
    folder = resources.files(__package__) / "schemas"
    texts = (file.read_text() for file in folder.iterdir() if file.name.endswith(".json"))
    return tuple(sorted(map(parse, texts), key=lambda schema: (schema.package, schema.key)))


@cache
def libraries() -> Mapping[str, tuple[str, ...]]:
    """Return the variables that libraries below the engines read, by library."""
    text = (resources.files(__package__) / "schemas" / "libraries.txt").read_text()
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        owner, _, names = line.partition(":")
        if names and not owner.startswith("#"):
            found[owner.strip()] = (*found.get(owner.strip(), ()), *names.split())
    return found


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a package at one version: its own list, else the nearest ones around it."""

    package: str
    version: str
    exact: Schema | None
    around: tuple[Schema, ...] = ()
    all: tuple[Schema, ...] = field(default=(), repr=False)

    @property
    def lists(self) -> tuple[Schema, ...]:
        return (self.exact,) if self.exact else self.around

    def with_flag(self, name: str) -> tuple[str, ...]:
        """Return the listed versions that have a flag, oldest first."""
        return tuple(schema.version for schema in self.all if name in schema.flags)

    def with_variable(self, name: str) -> tuple[str, ...]:
        """Return the listed versions that read a variable, oldest first."""
        return tuple(s.version for s in self.all if s.variables and name in s.variables)


def hold(package: str, at: str, asked: Iterable[Schema] = ()) -> Held:
    """Return what is known of a package at a version. `asked` are an image's own answers: they win.

    A version without a list lies between its neighbours; one that is no version has no list.
    """
    told = next((schema for schema in asked if schema.package == package), None)
    listed = tuple(schema for schema in shipped() if schema.package == package)
    if told is not None:
        return Held(package, at or told.version, told, all=listed)
    key = version(at)
    if key is None:
        return Held(package, at, None, all=listed)
    same = next((schema for schema in listed if schema.key == key), None)
    if same is not None:
        return Held(package, at, same, all=listed)
    below = [schema for schema in listed if schema.key < key][-1:]
    above = [schema for schema in listed if schema.key > key][:1]
    return Held(package, at, None, (*below, *above), listed)
