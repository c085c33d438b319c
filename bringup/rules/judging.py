"""What all checks share: how an unread fact is judged, and whether enough GPUs are left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from math import prod

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.rules import Level, Seen, Status, World, failed, passed
from ..probes.gpu import Gpu, Gpus
from ..probes.identity import Uptime
from ..probes.parts import NOT_ASKED
from ..probes.pci import PciGpus
from . import where

SOFT = {Status.FAIL: Level.WARN}
"""For rows whose failure costs speed or safety margin, but not the service."""

QUIET = {Status.FAIL: Level.WARN, Status.WARN: Level.NOTE}
"""For rows that matter to operations rather than to serving."""


def unread(reading: Absent | Unknown, *, essential: bool = False) -> Seen:
    """Judge a fact that nobody could read. One that was never asked for is only noted.

    An `essential` fact that was asked for in vain leaves the whole verdict unknown.
    """
    if isinstance(reading, Absent):
        return Seen(Status.UNKNOWN, (reading.evidence or "not there",), level=Level.NOTE)
    if reading.why == NOT_ASKED.why:
        return Seen(Status.UNKNOWN, ("unknown: not asked",), level=Level.NOTE)
    lines = (f"unknown: {reading.why}", reading.evidence)
    told = tuple(line for line in lines if line and line != f"unknown: {lines[1]}")
    return Seen(Status.UNKNOWN, told, level=Level.BLOCK if essential else Level.WARN)


def not_told(what: str) -> Seen:
    """Judge a field that no source told."""
    return Seen(Status.UNKNOWN, (f"unknown: {what}",), level=Level.NOTE)


def shut_out(world: World, closed: Collection[str]) -> Seen | None:
    """Return the failure of device files that this login may not open; None inside a container.

    There the engine is root, and the files are the container's own.
    """
    if not closed or (world.deployment is not None and world.deployment.in_container):
        return None
    more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
    first = next(iter(closed))
    group = first.rpartition(" ")[2].rstrip(")")
    remedy = (
        f"sudo usermod -aG {group} USER, and log in again"
        if group != "root"
        else ("log in as root, or give the files a group by a rule of udev")
    )
    return failed(f"this login may not open {first}{more}", remedy=remedy)


def gpus_of(world: World) -> tuple[Gpu, ...]:
    """Return the GPUs that NVML listed, () where it could not be asked."""
    reading = world.facts[Gpus]
    return reading.value.gpus if isinstance(reading, Known) else ()


def gpu_count(world: World) -> int | None:
    """Return how many GPUs the host has, by the surest word: bus, NVML, inventory."""
    bus, nvml = world.facts[PciGpus], world.facts[Gpus]
    shown = bus.value.count if isinstance(bus, Known) else None
    listed = nvml.value.count if isinstance(nvml, Known) else None
    counts = (shown, listed, world.host.gpu_count)
    if isinstance(bus, Known) and bus.value.is_loose:
        counts = (listed, world.host.gpu_count, shown)
    return next((count for count in counts if count is not None), None)


def gpus_needed(world: World) -> int | None:
    """Return how many GPUs of this host its role takes, None where that is all of them."""
    if world.role is not None and world.role.gpus:
        return len(world.role.gpus)
    if where.said(world, "tensor_parallel") is None and _ranks(world) <= 1:
        return None
    hosts = max((len(worker) for worker in world.role.workers), default=1) if world.role else 1
    return max(1, -(-_ranks(world) // max(1, hosts)))


def _ranks(world: World) -> int:
    """Return how many GPUs one worker takes on all its hosts, by the sizes that people wrote.

    Copies of attention (SGLang) lie inside the tensor-parallel group, and so do its experts.
    """
    knobs = ["tensor_parallel", "pipeline_parallel"]
    if where.said(world, "data_parallel_attention") is not True:
        knobs.append("data_parallel")
    sizes = prod(where.number(world, knob, 1) for knob in knobs)
    return max(sizes, where.number(world, "expert_parallel_size", 1))


def sizes_of(world: World) -> str:
    """Return the parallel sizes as evidence names them: ``tensor_parallel 8 × data_parallel 2``."""
    knobs = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel_size")
    sizes = ((knob, where.number(world, knob, 1)) for knob in knobs)
    return " × ".join(f"{knob} {size}" for knob, size in sizes if size > 1)


def loss(world: World, bad: Collection[object]) -> Level:
    """Judge the loss of some GPUs: a warning where the role's need is met without them."""
    count, needed = gpu_count(world), gpus_needed(world)
    if count is None or needed is None:
        return Level.BLOCK
    return Level.WARN if count - len(bad) >= needed else Level.BLOCK


def named(gpu: Gpu) -> str:
    """Return a GPU as evidence names it."""
    return f"GPU {gpu.index}{f' ({gpu.bus_id})' if gpu.bus_id else ''}"


def of_gpus(
    world: World,
    judge: Callable[[Gpu], Seen | None],
    *,
    fine: str,
    essential: bool = False,
) -> Seen:
    """Judge every GPU and return the worst. `judge` gives None for a GPU that tells nothing."""
    reading = world.facts[Gpus]
    if not isinstance(reading, Known):
        judged_once = unread(reading, essential=essential)
        return judged_once if essential else quiet(judged_once)
    seen = [(gpu, judged) for gpu in reading.value.gpus if (judged := judge(gpu)) is not None]
    if not seen:
        return not_told("no GPU tells")
    return worst(((named(gpu), one) for gpu, one in seen), fine)


def quiet(seen: Seen) -> Seen:
    """Return what another row tells in full: here it is a note, so that it is read once."""
    return replace(seen, level=Level.NOTE)


_ORDER = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.PASS, Status.SKIP)


def worst(seen: Iterable[tuple[str, Seen]], fine: str) -> Seen:
    """Return the gravest of what was seen, with the evidence of all that are as grave."""
    all_seen = tuple(seen)
    status = min((one.status for _, one in all_seen), key=_ORDER.index, default=Status.PASS)
    if status is Status.PASS:
        return passed(fine)
    alike = [(name, one) for name, one in all_seen if one.status is status]
    levels = [one.level for _, one in alike if one.level is not None]
    return Seen(
        status,
        tuple(_grouped((name, line) for name, one in alike for line in one.evidence)),
        level=min(levels, key=list(Level).index) if levels else None,
        remedy=next((one.remedy for _, one in alike if one.remedy), ""),
    )


def _grouped(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Say a line once for all that it holds for, naming three of them at most."""
    holders: dict[str, list[str]] = {}
    for name, line in lines:
        holders.setdefault(line, []).append(name)
    for line, names in holders.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"{', '.join(names[:3])}{more}: {line}"


def uptime_s(world: World) -> int | None:
    """Return seconds since the host started, None where it was not told."""
    uptime = world.facts[Uptime]
    return uptime.value.seconds if isinstance(uptime, Known) else None


def told(reading: Reading[str]) -> str:
    """Return a known word, "" for anything else."""
    return reading.value if isinstance(reading, Known) else ""
