"""What systemctl and journalctl told of the units that a GPU host has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ...core.reading import Known
from ..container import ContainerEngine
from ..driver import Driver
from ..fabric import FabricManager, read_version
from ..imex import Imex, of_unit
from ..parts import NOT_ASKED
from ..readers import systemd
from ..slurm import Slurm
from ..system import Limits
from .asked import Asked, Output
from .driver import read_log
from .piece import Piece, Readers, absent, known, unknown
from .slurm import read_allowed

Of = Callable[[systemd.Unit, str], Iterator[Piece]]


def _fabric(unit: systemd.Unit, line: str) -> Iterator[Piece]:
    if unit.is_missing:
        yield absent(FabricManager, line)
    elif unit.active or unit.said:
        yield known(
            FabricManager(unit.active, unit.enabled, unit.restarts, unit.result, said=unit.said),
            f"nvidia-fabricmanager is {unit.active}" if unit.active else line,
        )


def _persistenced(unit: systemd.Unit, line: str) -> Iterator[Piece]:
    if unit.active:
        yield known(Driver(persistenced=unit.active), line)


def _imex(unit: systemd.Unit, line: str) -> Iterator[Piece]:
    if unit.active or unit.is_missing:
        yield Piece(Imex, of_unit(unit, line))


def _docker(unit: systemd.Unit, line: str) -> Iterator[Piece]:
    if unit.limits:
        engine = {key: size for key, size in unit.limits.items() if size is not None}
        yield known(Limits(engine=engine), line)
    if unit.active in ("failed", "inactive"):
        why = f"cannot connect to the Docker daemon: its unit is {unit.active}"
        yield unknown(ContainerEngine, why, line)


def _slurmd(unit: systemd.Unit, line: str) -> Iterator[Piece]:
    if unit.active:
        yield known(Slurm(unit.active, NOT_ASKED, NOT_ASKED), line)


UNITS: Mapping[str, Of] = {
    "docker": _docker,
    "slurmd": _slurmd,
    "nvidia-fabricmanager": _fabric,
    "nvidia-persistenced": _persistenced,
    "nvidia-imex": _imex,
}


def read_systemctl(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `systemctl is-active|status|show UNIT`."""
    if output.is_missing or "not been booted with systemd" in output.text:
        return
    verb, *names = asked.operands or ("",)
    if verb == "list-units" or asked.has("--failed"):
        yield from _listed_units(output)
        return
    names = [name.removesuffix(".service") for name in names]
    for place, name in enumerate(names):
        if name in ("ssh", "sshd") and verb == "show":
            yield from read_allowed(output)
        elif name in UNITS:
            yield from UNITS[name](_unit(verb, output, place), output.line)


def _listed_units(output: Output) -> Iterator[Piece]:
    """Read rows of `systemctl list-units`: UNIT LOAD ACTIVE SUB DESCRIPTION."""
    rows = re.findall(r"(?m)^\W*([\w@-]+)\.service\s+(\S+)\s+(\w+)\s+\w+\s", output.stdout)
    for name, load, active in rows:
        if name in UNITS and active in systemd.STATES:
            unit = systemd.Unit(active, is_missing=load == "not-found")
            yield from UNITS[name](unit, f"{name} is {active}")


def _unit(verb: str, output: Output, place: int) -> systemd.Unit:
    if verb == "show":
        return systemd.read_show(output.stdout)
    if verb == "is-active":
        lines = output.stdout.split()
        return systemd.read_is_active(lines[place] if place < len(lines) else "")
    if verb == "status":
        return systemd.read_status(output.text)
    return systemd.Unit()


def read_journal(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `journalctl -u UNIT` or `journalctl -k`."""
    unit = asked.after("-u", "--unit").removesuffix(".service")
    if asked.has("-k", "--dmesg"):
        yield from read_log(asked, output)
    elif unit in UNITS and output.code == 0:
        yield from UNITS[unit](systemd.read_journal(output.stdout), output.line)
    elif not unit and re.search(r"NVRM: ", output.stdout):
        yield from read_log(asked, output)


def read_manager(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nv-fabricmanager --version`."""
    del asked
    if output.is_missing:
        yield absent(FabricManager, output.line)
        return
    version = read_version(output.stdout)
    if isinstance(version, Known):
        yield known(FabricManager(version=version), version.evidence)


READERS: Readers = {
    "systemctl": read_systemctl,
    "journalctl": read_journal,
    "nv-fabricmanager": read_manager,
}
