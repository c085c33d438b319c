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
    elif unit.active or unit.said or unit.enabled:
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
    properties = asked.after("-p", "--property")
    names = [name.removesuffix(".service") for name in names if name != properties]
    for place, name in enumerate(names):
        if name in ("ssh", "sshd") and verb == "show":
            yield from read_allowed(output)
        elif name in UNITS:
            yield from UNITS[name](_unit(asked, output, place), output.line)


def read_service(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `service UNIT status`, which systemd answers as its own."""
    name, *verb = asked.operands or ("",)
    if name in UNITS and verb == ["status"]:
        yield from UNITS[name](systemd.read_status(output.text), output.line)


def read_pgrep(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `pgrep [-a|-x|-f] nv-fabricmanager`: it runs, or surely does not."""
    if asked.path.startswith(("nv-fabricm", "fabricmanager")) and output.code in (0, 1):
        state = "active" if output.code == 0 and output.stdout.strip() else "inactive"
        yield known(FabricManager(state), output.line or "pgrep finds no nv-fabricmanager")


def read_manager_log(output: Output) -> Iterator[Piece]:
    """Read /var/log/fabricmanager.log: ``[date] [ERROR] [tid 1] message``."""
    rows = re.findall(r"(?m)^\[[^]]*\] \[(ERROR|WARNING)\] \[tid \d+\] (.*)$", output.stdout)
    if rows:
        said = tuple(f"nv-fabricmanager: {message}" for _, message in rows)
        yield known(FabricManager(said=said), said[-1])


def _listed_units(output: Output) -> Iterator[Piece]:
    """Read rows of `systemctl list-units`: UNIT LOAD ACTIVE SUB DESCRIPTION."""
    rows = re.findall(r"(?m)^\W*([\w@-]+)\.service\s+(\S+)\s+(\w+)\s+\w+\s", output.stdout)
    for name, load, active in rows:
        if name in UNITS and active in systemd.STATES:
            unit = systemd.Unit(active, is_missing=load == "not-found")
            yield from UNITS[name](unit, f"{name} is {active}")


def _unit(asked: Asked, output: Output, place: int) -> systemd.Unit:
    verb = asked.operands[0]
    lines = output.stdout.split()
    word = lines[place] if place < len(lines) else ""
    if verb == "show" and asked.has("--value"):
        return systemd.read_is_active(word if "ActiveState" in " ".join(asked.words) else "")
    if verb == "show":
        return systemd.read_show(output.stdout)
    if verb == "is-active":
        return systemd.read_is_active(word)
    if verb == "is-enabled":
        return systemd.Unit(enabled=word)
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
    "service": read_service,
    "pgrep": read_pgrep,
    "journalctl": read_journal,
    "nv-fabricmanager": read_manager,
}
