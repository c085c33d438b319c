"""What an engine is to bringup: how settled knobs reach its command line, and what it accepts.

An engine is one module in this folder with a table of `Setting` rows and an `ENGINE` record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.knobs import Decision
from ..core.rules import Finding, World
from ..core.version import within
from ..core.words import Secret
from .schema import Schema

Settled: TypeAlias = Mapping[str, Decision]
"""Decisions by knob name, as `core.knobs.settle` gives them."""

EVERY_MODE = (Mode.PREFILL, Mode.DECODE, Mode.AGGREGATED)


def plainly(value: Scalar) -> str:
    """Return a value as command lines spell it: whole numbers without a point, true as 1."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True, slots=True)
class Setting:
    """How one knob reaches the engine: by a flag or a variable, in some modes and versions.

    A true knob without `spell` is a bare flag; a false one is `off`, or nothing. `spell` turns a
    value into the engine's word; its None leaves the flag out. Versions are [since, until).
    """

    knob: str
    flag: str = ""
    variable: str = ""
    off: str = ""
    modes: tuple[Mode, ...] = EVERY_MODE
    since: str = ""
    until: str = ""
    spell: Callable[[Scalar, World], str | None] | None = None

    def holds(self, mode: Mode, version: str) -> bool:
        """Return whether this row speaks; of an unknown version the newest spelling is taken."""
        inside = within(version, self.since, self.until)
        return mode in self.modes and (not self.until if inside is None else inside)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A worker's words and variables, and for each flag or variable the chain that led to it.

    The first `program` words name the program; options follow.
    """

    argv: tuple[str | Secret, ...]
    env: Mapping[str, str | Secret] = field(default_factory=dict)
    why: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    program: int = 0


Versions: TypeAlias = Mapping[str, str]
"""Package name to version inside the image; "" or missing: nobody said."""

Command: TypeAlias = Callable[[Settled, World, Deployment, Role], CommandLine]


class Check(Protocol):
    """Tell what these versions refuse, ignore or misread in a command line.

    `asked` are schemas that an image gave of itself; they win over the shipped ones.
    """

    def __call__(
        self, line: CommandLine, versions: Versions, asked: Iterable[Schema] = ()
    ) -> tuple[Finding, ...]: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: its command line, the check of one, and the script each mode is kept in."""

    name: str
    title: str
    modes: tuple[Mode, ...]
    scripts: Mapping[Mode, str]
    settings: tuple[Setting, ...]
    command: Command
    check: Check
    versions: Callable[[Deployment], Versions]
    port: int  # the engine's default HTTP port
    registers: bool  # the worker registers itself with etcd; else clients talk to its port

    def script_of(self, mode: Mode) -> str:
        """Return the file name of the script that starts a worker of this mode."""
        return self.scripts[mode]
