"""Put a command line together from pieces: flags and variables, each with what led to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.knobs import Decision
from ..core.rules import World
from ..core.words import Secret
from .engine import CommandLine, Setting, Settled, plainly

SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|PASSWORD|PASSWD|SECRET|CREDENTIALS?|PRIVATE|API_?KEY|ACCESS_KEY|NKEY)"
    r"(?:_ID)?$"
)
_USER_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Piece:
    """One flag ("--x", a value or None) or one variable ("X", a value), and its chain."""

    name: str
    value: str | Secret | None
    why: tuple[str, ...]

    @property
    def is_flag(self) -> bool:
        return self.name.startswith("-")


def shown(value: Scalar) -> str:
    """Return a value as people read it in an inventory."""
    return str(value).lower() if isinstance(value, bool) else plainly(value)


def chain(decision: Decision) -> tuple[str, ...]:
    """Return the chain from a decision back to the word that made it, nearest first."""
    lines = [f"{decision.knob} = {shown(decision.value)}, said {decision.by}"]
    if decision.because:
        lines.append(f"because {decision.because}")
    lines += [
        f"overrules {shown(o.value)}, said {o.by}" + (f" ({o.because})" if o.because else "")
        for o in decision.overruled
    ]
    return tuple(lines)


def pieces_of(
    settings: Iterable[Setting], settled: Settled, world: World, mode: Mode, version: str
) -> Iterator[Piece]:
    """Yield what the settled knobs come to in this mode and version, in the table's order."""
    for setting in settings:
        decision = settled.get(setting.knob)
        if decision is not None and setting.holds(mode, version):
            yield from _spelt(setting, decision, world)


def _spelt(setting: Setting, decision: Decision, world: World) -> Iterator[Piece]:
    value: Scalar = decision.value
    if setting.spell is not None:
        word = setting.spell(value, world)
        if word is not None:
            yield Piece(setting.flag or setting.variable, word, chain(decision))
    elif setting.variable:
        yield Piece(setting.variable, plainly(value), chain(decision))
    elif isinstance(value, bool):
        name = setting.flag if value else setting.off
        if name:
            yield Piece(name, None, chain(decision))
    else:
        yield Piece(setting.flag, plainly(value), chain(decision))


def extra(deployment: Deployment, role: Role) -> Iterator[Piece]:
    """Yield the flags and variables that the inventory adds to a role by hand."""
    said = (f"said role {role.name} of {deployment.name}",)
    for name, value in role.flags.items():
        if value is not False:  # a switch that is off is a switch that is not there
            text = None if value is None or value is True else plainly(value)
            yield Piece(name if name.startswith("-") else f"--{name}", text, said)
    for name, text in role.env.items():
        yield Piece(name, text, said)


def guarded(name: str, value: str | Secret | None) -> str | Secret | None:
    """Return the value, as a secret where its name or a login inside its URL says that it is."""
    if isinstance(value, str) and (SECRET_NAME.search(name) or _USER_IN_URL.search(value)):
        return Secret(value)
    return value


def assemble(program: tuple[str, ...], pieces: Iterable[Piece]) -> CommandLine:
    """Return the command line of all pieces. A variable said later replaces an earlier one."""
    argv: list[str | Secret] = [*program]
    env: dict[str, str | Secret] = {}
    why: dict[str, tuple[str, ...]] = {}
    for piece in pieces:
        why[piece.name] = (*piece.why, *_replaced(piece, env))
        if piece.is_flag:
            argv += [piece.name] if piece.value is None else [piece.name, piece.value]
        else:
            env[piece.name] = guarded(piece.name, piece.value) or ""
    return CommandLine(tuple(argv), env, why, len(program))


def _replaced(piece: Piece, env: dict[str, str | Secret]) -> tuple[str, ...]:
    return (f"replaces {env[piece.name]}",) if piece.name in env else ()
