"""Explain a flag or variable that no knob spells: which versions of which engine have it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from .quirks import MOVED
from .schema import Flag, Schema, shipped


def words() -> frozenset[str]:
    """Return every flag and variable of every listed version."""
    return frozenset(
        word for schema in shipped() for word in (*schema.flags, *(schema.variables or ()))
    )


def versions_of(name: str) -> tuple[tuple[str, str], ...]:
    """Return a line for each package that ever had a flag or variable: where it is, where not."""
    spelt = (name, f"--{name}")
    lines: list[tuple[str, str]] = []
    for package, group in groupby(shipped(), key=lambda schema: schema.package):
        schemas = tuple(group)
        having = [schema for schema in schemas if _has(schema, spelt)]
        if having:
            lines.append((package, "; ".join(_said(schemas, having, spelt))))
    if name in MOVED:
        lines.append(("instead", f"{MOVED[name].instead} ({MOVED[name].reason})"))
    return tuple(lines)


def _has(schema: Schema, spelt: tuple[str, ...]) -> bool:
    return any(word in schema.flags or word in (schema.variables or ()) for word in spelt)


def _said(
    schemas: tuple[Schema, ...], having: list[Schema], spelt: tuple[str, ...]
) -> Iterator[str]:
    yield "in " + ", ".join(schema.version for schema in having)
    if lacking := [schema.version for schema in schemas if schema not in having]:
        yield "not in " + ", ".join(lacking)
    flag = next((having[-1].flags[word] for word in spelt if word in having[-1].flags), None)
    if flag is not None:
        yield from _form(flag)


def _form(flag: Flag) -> Iterator[str]:
    if not flag.takes_value:
        yield "takes no value"
    if flag.choices:
        yield f"takes {', '.join(flag.choices)}"
    if flag.deprecated:
        yield "deprecated"
