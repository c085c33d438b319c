"""OS-04: does host memory hold what an engine and its cache take?"""

from __future__ import annotations

from ..core.reading import Known
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.containers import Containers
from ..probes.kernel_log import KernelLog
from ..probes.memory import Memory
from . import where
from .judging import SOFT, gpus_of, not_told, unread

RESERVE_MIB = 10 * 1024  # sglang#40135


def _cache(world: World) -> Seen:
    """Compare what the hierarchical cache will take with what the host has left."""
    reading = world.facts[Memory]
    if killed := _killed(world):
        return warned(killed, remedy="lower hicache_ratio, or stop what else takes host memory")
    if not where.said(world, "hierarchical_cache"):
        return _little(world) or skipped("no hierarchical cache is planned")
    if not isinstance(reading, Known):
        return unread(reading)
    need = _pool_mib(world)
    left = reading.value.available_mib - RESERVE_MIB
    if need is None:
        return not_told("the size of the cache")
    line = f"the cache takes {need // 1024} GiB, {left // 1024} GiB are left after a reserve"
    if need > left:
        return failed(line, remedy=f"set hicache_ratio or hicache_size_gb for {world.host.name}")
    return warned(line, level=Level.NOTE) if need > left * 0.8 else passed(line)


def _little(world: World) -> Seen | None:
    """Judge a host whose memory would not hold an engine's own processes."""
    reading = world.facts[Memory]
    if not isinstance(reading, Known) or reading.value.available_mib >= RESERVE_MIB:
        return None
    line = f"{reading.value.available_mib / 1024:.1f} GiB of host memory are available"
    return warned(line, remedy="find what holds it: ps --sort=-rss; grep Huge /proc/meminfo")


def _killed(world: World) -> str:
    """Return what shows that a process or a container was ended for want of memory."""
    listed = world.facts[Containers]
    containers = listed.value.containers if isinstance(listed, Known) else ()
    if ended := [c.name for c in containers if c.oom_killed]:
        return f"container {ended[0]} was ended for want of memory (OOMKilled)"
    log = world.facts[KernelLog]
    lines = log.value.complaints or () if isinstance(log, Known) else ()
    killed = [line for line in lines if "out of memory: killed process" in line.lower()]
    return killed[-1] if killed else ""


def _pool_mib(world: World) -> int | None:
    """Return the cache's host memory: size a GPU, or ratio times what the weights leave."""
    gpus = gpus_of(world)
    size, ratio = where.said(world, "hicache_size_gb"), where.said(world, "hicache_ratio")
    if isinstance(size, int | float) and size > 0:
        return int(size * 1000**3 / 1024**2) * max(len(gpus), 1)
    total = sum(gpu.memory_mib or 0 for gpu in gpus)
    weights = world.deployment.model.weights_gib if world.deployment else None
    if not total or weights is None or not isinstance(ratio, int | float):
        return None
    return int(max(total * 0.85 - weights * 1024, 0) * ratio)


ROWS: tuple[Row[World], ...] = (
    Row(
        "OS-04", "Host memory holds the hierarchical cache", _cache,
        "a cache larger than what is left ends the worker or the host; huge pages do not count "
        "as available",
        "https://github.com/sgl-project/sglang/issues/34972", levels=SOFT,
    ),
)  # fmt: skip
