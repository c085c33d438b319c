"""Knobs as people set them, against the table of knobs: names, types, choices, engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.host import Scalar
from ..core.knobs import Knob, unfit
from ..core.nearest import did_you_mean
from .inventory_roster import Fault
from .schema import DeploymentEntry, HostsFile, KindEntry
from .yaml_marks import Path


def in_hosts(file: HostsFile, table: Mapping[str, Knob]) -> Iterator[Fault]:
    """Yield the knobs of a hosts file that are not right."""
    yield from _faults(file.defaults.knobs, ("defaults", "knobs"), table)
    for name, group in file.groups.items():
        yield from _faults(group.knobs, ("groups", name, "knobs"), table)
    for key, host in file.hosts.items():
        yield from _faults(host.knobs if host else None, ("hosts", key, "knobs"), table)


def in_kind(entry: KindEntry, table: Mapping[str, Knob]) -> Iterator[Fault]:
    """Yield the knobs of a kind that are not right."""
    yield from _faults(entry.said().get("knobs"), ("knobs",), table)


def in_deployment(entry: DeploymentEntry, table: Mapping[str, Knob]) -> Iterator[Fault]:
    """Yield the knobs of a deployment that are not right, or not for its engine."""
    yield from _faults(entry.knobs, ("knobs",), table, entry.engine or "")
    for name, role in entry.roles.items():
        yield from _faults(role.knobs, ("roles", name, "knobs"), table, entry.engine or "")


def _faults(
    said: Mapping[str, Scalar] | None, path: Path, table: Mapping[str, Knob], engine: str = ""
) -> Iterator[Fault]:
    for name, value in (said or {}).items():
        if name not in table:
            yield (*path, name), f"no knob {name!r}{did_you_mean(name, table)}"
        elif message := _trouble(table[name], value, engine):
            yield (*path, name), message


def _trouble(knob: Knob, value: Scalar, engine: str) -> str:
    """Return what is wrong with a knob's value, or ""."""
    if engine and knob.engines and engine not in knob.engines:
        return f"is a knob of {' and '.join(knob.engines)}, not of {engine}"
    return unfit(knob, value)
