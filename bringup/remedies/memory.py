"""Remedies for host memory: swap off, huge pages that nobody uses given back."""

from __future__ import annotations

from ..core.reading import Known
from ..core.rules import World
from ..core.steps import Step
from ..core.words import HostPath, quote
from ..probes.memory import Memory
from ..probes.system import Processors
from ..steps.command import command_step
from ..steps.kernel import sysctl_steps
from .remedy import Remedy

SPARE = 2
"""What is in swap must fit into available memory this many times, or it stays where it is."""

TARGET = HostPath("/etc/systemd/system/swap.target")
_SWAP = '[ "$(wc -l <"$R/proc/swaps")" -le 1 ] && echo off || echo on'
_AT_START = f"""
f={quote(TARGET)}
[ "$(readlink "$f")" = /dev/null ] && {{ echo masked; exit 0; }}
[ -e "$f" ] && echo "not masked: somebody wrote it" || echo "not masked"
"""


def swap_steps(world: World) -> tuple[Step, ...]:
    """Return the steps that turn swap off, now and at every start; () where memory is short.

    fstab stays as it is: systemd's target for swap is masked by a link, without a reload.
    """
    processors, memory = world.facts[Processors], world.facts[Memory]
    if not isinstance(processors, Known) or not processors.value.swap_kib:
        return ()
    needed_mib = SPARE * processors.value.swap_kib // 1024
    if not isinstance(memory, Known) or memory.value.available_mib < needed_mib:
        return ()
    return (
        command_step("swap-at-start", "leave swap off at every start", _AT_START, "masked",
                     ("ln", "-s", "/dev/null", TARGET)),
        command_step("swap", "turn swap off", _SWAP, "off", ("swapoff", "-a"), seconds=1800,
                     why="what is in it fits into memory that is free"),
    )  # fmt: skip


def _huge_pages(world: World) -> tuple[Step, ...]:
    """The kernel gives back pages that are free; those in use stay until they are not."""
    memory = world.facts[Memory]
    if not isinstance(memory, Known) or not memory.value.hugepages_mib:
        return ()
    return sysctl_steps("vm.nr_hugepages", "0", why="huge pages do not count as available memory")


ROWS: tuple[Remedy, ...] = (
    Remedy(
        "OS-04", "give back huge pages that nobody uses", _huge_pages, 45,
        only_named="programs that do not run now may count on them: name it by --fix-only",
    ),
)  # fmt: skip
