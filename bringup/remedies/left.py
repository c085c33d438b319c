"""What fixes leave to a person: commands that can be typed on this host one after another.

A host that has to be idle is freed once, before the first command that needs it. One reset, or one
reboot, stands for all that ask for it; then the host is looked at again, and given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..core.fixes import Fix, Risk
from ..core.reading import Absent, Known
from ..core.rules import World
from ..core.words import command
from ..probes.containers import Containers
from ..probes.fabric import FabricManager
from ..probes.slurm import Slurm
from ..rules.checks_slurm import OFF
from .by_hand import End, Hand, by_hand
from .gpu import gpus_in_use
from .remedy import FIRST, Remedy


@dataclass(frozen=True, slots=True)
class _Left:
    """A fix that a person does, and how far it goes."""

    fix: Fix
    hand: Hand
    needs_idle: bool

    @property
    def place(self) -> int:
        """Boards and their driver come first, then all that needs an idle host, then the rest."""
        return 1 if self.needs_idle else 0 if self.fix.finding.id in FIRST else 2


def arranged(world: World, fixes: Iterable[Fix], rows: dict[str, Remedy]) -> tuple[Fix, ...]:
    """Return fixes: those that are taken, then what is left to a person in the order to go."""
    every = tuple(fixes)
    left = [_left(world, fix, rows.get(fix.finding.id)) for fix in every if not fix.is_taken]
    left.sort(key=lambda one: one.place)
    idle = [one for one in left if one.needs_idle]
    told = {one.fix.finding.id: one.fix for one in left}
    if idle:
        told |= _freed(world, idle)
    taken = (fix for fix in every if fix.is_taken)
    return (*taken, *(told[one.fix.finding.id] for one in left))


def _left(world: World, fix: Fix, row: Remedy | None) -> _Left:
    """Return a fix with the commands of this host, where facts can fill them in."""
    if row is not None and fix.steps:
        return _Left(fix, Hand(fix.commands), row.unless is gpus_in_use and bool(row.unless(world)))
    hand = by_hand(world, fix.finding) if fix.commands else None
    if hand is None:
        return _Left(fix, Hand(fix.commands), needs_idle=False)
    told = replace(fix, commands=hand.commands or fix.commands)
    if hand.end is End.NOW:
        return _Left(told, hand, needs_idle=False)
    risk = Risk.DRAIN if hand.end is End.RESET else Risk.REBOOT
    told = replace(fix, commands=hand.commands, risk=risk, withheld=_why(hand))
    return _Left(told, hand, needs_idle=True)


def _why(hand: Hand) -> str:
    if hand.end is not End.RESET:
        return "needs a power cycle" if hand.end is End.POWER_CYCLE else "needs reboot"
    which = ", ".join(map(str, hand.gpus))
    return f"needs an idle host and a reset{f' of GPU {which}' if which else ''}"


def _freed(world: World, idle: list[_Left]) -> dict[str, Fix]:
    """Return the fixes that need an idle host: freed before the first, in use after the last."""
    first, last = idle[0].fix, idle[-1].fix
    host = world.host.name
    reason = "bringup: " + ", ".join(one.fix.finding.id for one in idle)
    is_taken = _is_given_out(world)
    before = _stop(world)
    if is_taken:
        before += (command(["bringup", "slurm.take", "--host", host, "--drain",
                            "--reason", reason]),)  # fmt: skip
    after = (*_end(world, idle), f"bringup provision --host {host} --fix --check")
    after += (f"bringup slurm.give --host {host}",) if is_taken else ()
    told = {one.fix.finding.id: one.fix for one in idle}
    told[first.finding.id] = replace(first, commands=(*before, *first.commands))
    end = told[last.finding.id]
    told[last.finding.id] = replace(end, commands=(*end.commands, *after))
    return told


def _is_given_out(world: World) -> bool:
    """Tell whether Slurm gives jobs to this host, which nobody has taken yet."""
    reading = world.facts[Slurm]
    node = reading.value.node if isinstance(reading, Known) else None
    return isinstance(node, Known) and not OFF.search(node.value.state)


def _stop(world: World) -> tuple[str, ...]:
    """Return what ends our own worker; others are their owners' to end."""
    reading = world.facts[Containers]
    if world.deployment is None or isinstance(reading, Absent):
        return ()
    ours = not isinstance(reading, Known) or any(
        one.is_running and one.labels for one in reading.value.containers
    )
    words = ["bringup", "serve.stop", "--deployment", world.deployment.name, "--host",
             world.host.name]  # fmt: skip
    return (command(words),) if ours or not world.deployment.in_container else ()


def _end(world: World, idle: list[_Left]) -> tuple[str, ...]:
    gravest = max(one.hand.end for one in idle)
    if gravest is End.POWER_CYCLE:
        return ("sync; ipmitool chassis power cycle  # a reboot leaves the boards their power",)
    if gravest is End.REBOOT:
        return ("systemctl reboot",)
    resets = [one.hand for one in idle if one.hand.end is End.RESET]
    return _reset(world, sorted({gpu for hand in resets for gpu in hand.gpus})) if resets else ()


def _reset(world: World, gpus: list[int]) -> tuple[str, ...]:
    """Return the reset; on a board with NVSwitches all GPUs are reset at once."""
    look = "fuser -v /dev/nvidia*  # nobody may be left but NVIDIA's own daemons"
    has_switches = world.kind is not None and (world.kind.fabric_manager or world.kind.nvlsm)
    if not has_switches and gpus:
        return look, f"nvidia-smi --gpu-reset -i {','.join(map(str, gpus))}"
    is_there = isinstance(world.facts[FabricManager], Known)
    again = ("systemctl restart nvidia-fabricmanager",) if has_switches and is_there else ()
    return (look, "nvidia-smi --gpu-reset", *again)
