"""Swap, huge pages, folders of kernels: from the fault to what is wanted, and back, on a host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from bringup.core.host import Image
from bringup.core.receipt import Done, Outcome
from bringup.core.steps import State, Step
from bringup.probes.memory import Memory
from bringup.probes.system import Processors
from bringup.remedies import gpu, memory
from bringup.remedies.remedy import Build
from bringup.steps.back import back, in_order
from tests.fleet.fixtures import MakeFleet
from tests.fleet.yard import FleetHost

from ..rules.situations import PAIR, world
from .hands import Shell, plan, settle, states

SWAPPING = Processors(8, 8, swap_kib=8 * 1024**2)
ROOM = Memory(512_000, 400_000, hugepages_mib=2048)

# The kernel has one swap and one count of huge pages for all namespaces: copies stand for them.
COPIES = r"""
printf 'Filename\tType\tSize\tUsed\tPriority\n/swap.img\tfile\t8388604\t0\t-2\n' >/run/swaps
cp /run/swaps /run/swaps.full
mount --bind /run/swaps /proc/swaps
mkdir /run/vm && cp -r /proc/sys/vm/. /run/vm 2>/dev/null; echo 1024 >/run/vm/nr_hugepages
mount --bind /run/vm /proc/sys/vm
printf '#!/bin/sh\nhead -n 1 /run/swaps.full >/run/swaps\n' >/usr/sbin/swapoff
printf '#!/bin/sh\ncat /run/swaps.full >/run/swaps\n' >/usr/sbin/swapon
chmod 755 /usr/sbin/swapoff /usr/sbin/swapon
mkdir -p /etc/sysctl.d
"""


def shell_of(host: FleetHost) -> Shell:
    def run(script: str, stdin: bytes = b"") -> tuple[int, str]:
        done = host.exec("sh", "-c", script, check=False, stdin=stdin)
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    return run


def undo(steps: Iterable[Step], found: dict[str, str], shell: Shell) -> list[State]:
    """Take steps back, last first, by receipts that say what stood there before."""
    ways = [
        back(Done(step.id, Outcome.CHANGED, found=found[step.id], wanted=step.wanted))
        for step in reversed(tuple(steps))
    ]
    every = [way.step for way in in_order(ways) if way.step is not None]
    assert len(every) == len(found)
    return states(settle(every, shell=shell))


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("finding", ["OS-04", "OS-06", "JIT-06"])
def test_a_fault_is_mended_once_and_taken_back(fleet: MakeFleet, finding: str) -> None:
    (host,) = fleet(1)
    shell = shell_of(host)
    host.exec("sh", "-c", COPIES)
    named = replace(PAIR, knobs={"cache_folder": "/raid/cache"}, image=Image("i", digest=DIGEST))
    of = world(SWAPPING, ROOM, pair=True, deployment=named)
    steps = memory.swap_steps(of) if finding == "OS-06" else by(finding)(of)
    before = {p.step.id: p.observation.found for p in plan(steps, shell=shell)}
    assert set(states(plan(steps, shell=shell))) == {State.CHANGE}
    assert set(states(settle(steps, shell=shell))) == {State.SAME}
    assert set(undo(steps, before, shell)) == {State.SAME}
    assert {p.step.id: p.observation.found for p in plan(steps, shell=shell)} == before


def by(finding: str) -> Build:
    rows = {row.finding: row.build for row in (*memory.ROWS, *gpu.ROWS)}
    return rows[finding]


DIGEST = "sha256:" + "ab" * 32


def test_swap_stays_where_memory_is_short_or_not_known() -> None:
    assert memory.swap_steps(world(SWAPPING, Memory(16_000, 12_000))) == ()
    assert memory.swap_steps(world(SWAPPING)) == ()
    assert memory.swap_steps(world(Processors(8, 8, swap_kib=0), ROOM)) == ()


@pytest.mark.root
@pytest.mark.slow
def test_a_target_that_somebody_wrote_is_not_replaced(fleet: MakeFleet) -> None:
    (host,) = fleet(1)
    host.exec(
        "sh",
        "-c",
        f"{COPIES}mkdir -p /etc/systemd/system; echo own >/etc/systemd/system/swap.target",
    )
    (first, _) = memory.swap_steps(world(SWAPPING, ROOM))
    with pytest.raises(AssertionError, match="File exists"):
        settle([first], shell=shell_of(host))
    assert host.text("cat", "/etc/systemd/system/swap.target") == "own\n"


def test_kernels_of_an_image_lie_in_folders_of_their_own() -> None:
    named = replace(PAIR, knobs={"cache_folder": "/raid/cache"}, image=Image("i", digest=DIGEST))
    steps = by("JIT-06")(world(pair=True, deployment=named))
    assert [step.id for step in steps] == [
        "folder:/raid/cache", "folder:/raid/cache/abababababab",
        "folder:/raid/cache/abababababab/triton",
        "folder:/raid/cache/abababababab/inductor", "folder:/raid/cache/abababababab/flashinfer",
    ]  # fmt: skip
