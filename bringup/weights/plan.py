"""The plan of a copy: what each host gets, how, in what time, and why one cannot get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ..probes.caches import NETWORK
from .compare import Difference
from .folder import File, Folder

RESERVE = 1 << 30
"""Bytes of a disk that a copy leaves free, or a hundredth of the disk where that is less."""

CARRIED_MB_S = 40.0
"""What one controller carries in a second through its SSH lines; 33 on two busy cores."""

DISK_MB_S = 2000.0
"""What a host's disks are taken to write in a second: one NVMe disk, sustained."""

ASSUMED_MB_S = 1250.0
"""Line of a host that does not tell its speed: 10 Gb/s."""


class Way(Enum):
    """How bytes reach a host."""

    NOTHING = "nothing to do"
    DIRECT = "from host to host"
    CARRIED = "through this controller"
    MOUNTED = "from its own mount"
    SENT = "from this controller"


BETWEEN = (Way.DIRECT, Way.CARRIED)
"""Ways on which hosts serve each other."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What one host is to get. `trouble` says why it cannot, "" where it can. Bytes."""

    host: str
    path: str
    folder: Folder
    difference: Difference
    way: Way
    parts_bytes: int = 0  # of what it lacks, already there in unfinished files
    trouble: str = ""

    @property
    def bytes(self) -> int:
        """Bytes that are still to come."""
        return sum(file.size for file in self.difference.files) - self.parts_bytes

    @property
    def is_change(self) -> bool:
        return bool(self.difference.files)


def host_plan(host: str, folder: Folder, found: Difference, way: Way) -> HostPlan:
    """Return the plan of one host."""
    files = found.files
    there = sum(min(folder.parts.get(file.key, 0), file.size) for file in files)
    trouble = found.refusal if files else ""
    if files and not trouble:
        trouble = _no_room(folder, sum(file.size for file in files) - there)
    return HostPlan(host, folder.path, folder, found, way if files else Way.NOTHING, there, trouble)


def _no_room(folder: Folder, needed: int) -> str:
    ground = folder.ground
    if ground.may_write is False:
        return f"the login may not write to {folder.path}"
    if ground.free_bytes is None:
        return "how much room its disk has is not known"
    spare = min(RESERVE, (ground.total_bytes or 0) // 100)
    if ground.free_bytes - spare >= needed:
        return ""
    return f"its disk has {size(ground.free_bytes)} free, {size(needed + spare)} are needed"


def on_shares(plans: Mapping[str, HostPlan]) -> dict[str, HostPlan]:
    """Return plans in which one host alone writes a folder that several mount from a server."""
    writers: dict[tuple[str, str], str] = {}
    found: dict[str, HostPlan] = {}
    for name, plan in plans.items():
        kind = plan.folder.ground.file_system
        if plan.is_change and not plan.trouble and kind.lower().startswith(NETWORK):
            first = writers.setdefault((plan.path, kind), name)
            if first != name:
                trouble = f"it lies on a share ({kind}) where {first} writes the same folder"
                plan = replace(plan, trouble=trouble)  # noqa: PLW2901 - the plan as it has to be
        found[name] = plan
    return found


def seconds_for(
    plans: Mapping[str, HostPlan], way: Way, source: Folder, *, limit_mb_s: float = 0
) -> float:
    """Estimate how long a copy takes by the slowest line on its way.

    Hosts that have a file hand it on, so many hosts take about twice as long as one.
    """
    loads = [plan.bytes for plan in plans.values() if plan.is_change and not plan.trouble]
    if not loads:
        return 0.0
    if way in (Way.CARRIED, Way.SENT):
        return sum(loads) / 1e6 / rate_of(source, way, limit_mb_s=limit_mb_s)
    rate = rate_of(source, way, limit_mb_s=limit_mb_s)
    times = 2 if len(loads) > 1 and way is Way.DIRECT else 1
    return times * max(loads) / 1e6 / rate


def rate_of(source: Folder, way: Way, *, limit_mb_s: float = 0) -> float:
    """Return the MB/s that are taken for a copy: of SSH lines, or the slower of line and disks."""
    line = max(source.ground.line_mb_s.values(), default=ASSUMED_MB_S)
    rate = CARRIED_MB_S if way in (Way.CARRIED, Way.SENT) else min(line, DISK_MB_S)
    return min(rate, limit_mb_s or rate)


def size(count: float) -> str:
    """Return bytes as people read them: 1.5 TB."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:.{1 if count < 10 ** (power + 2) else 0}f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Return seconds as people read them: 12 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def order_for(files: tuple[File, ...], place: int, hosts: int) -> tuple[File, ...]:
    """Return a host's files, begun at its own place: so hosts soon have what others lack."""
    big = sorted(files, key=lambda file: (-file.size, file.name))
    start = place * len(big) // max(1, hosts)
    return (*big[start:], *big[:start])
