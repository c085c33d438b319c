"""Processors, limits, stuck processes and pending reboots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .text import GET, answered, first, limit, natural, rows, size_of, told, whole


@dataclass(frozen=True, slots=True)
class Processors:
    """Processors and what slows them. None: the kernel does not tell."""

    online: int
    present: int
    nodes: int | None = None
    governors: tuple[str, ...] = ()  # different ones in use; () where there is no cpufreq
    numa_balancing: bool | None = None
    swap_kib: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of this login and of the container daemon; -1 is unlimited, None is not told.

    `memlock` in bytes; `engine` is () where no daemon runs or its limits cannot be read.
    """

    memlock: int | None = None
    files: int | None = None
    processes: int | None = None
    engine: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stuck:
    """Processes in uninterruptible sleep: ``nvidia-smi (4711)``."""

    processes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernels:
    """Installed kernels, and whether each has an nvidia module; `running` is the one in use."""

    running: str
    installed: Mapping[str, bool]
    wants_reboot: str = ""  # what the distribution's own mark says, "" without one

    @property
    def next(self) -> str:
        """The newest installed kernel: the one that the next boot most likely takes."""
        return max(self.installed, key=natural, default="")


PROCESSORS = (
    GET
    + r"""
for k in online present; do tell $k /sys/devices/system/cpu/$k; done
tell nodes /sys/devices/system/node/online
tell balancing /proc/sys/kernel/numa_balancing
for f in "$R"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
  get "$f"; [ -z "$v" ] || printf 'governor\t%s\n' "$v"
done | sort -u
[ -r "$R/proc/swaps" ] && sed 's/^/swap	/' "$R/proc/swaps"
say end processors
"""
)


def parse_processors(section: Section) -> Reading[Processors]:
    """Return counts from the kernel's lists; unknown where those are no lists."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    online, present = size_of(first(found, "online")), size_of(first(found, "present"))
    if online is None:
        return Unknown("no list of processors that are online", section.first)
    balancing = whole(first(found, "balancing"))
    processors = Processors(
        online,
        online if present is None else present,
        size_of(first(found, "nodes")),
        tuple(sorted(set(found.get("governor", ())))),
        None if balancing is None else balancing > 0,
        _swap(found.get("swap", ())),
    )
    return Known(processors, f"{online} processors online")


def _swap(lines: tuple[str, ...]) -> int | None:
    """Sum the sizes in /proc/swaps: a heading, then file, type, size, used, priority."""
    if not lines or not lines[0].startswith("Filename"):
        return None
    sizes = [whole(words[2]) for line in lines[1:] if len(words := line.split()) >= 5]
    return sum(size or 0 for size in sizes)


LIMITS = r"""
sed 's/^/login	/' "$R/proc/self/limits" 2>/dev/null || sed 's/^/login	/' /proc/self/limits
for f in /run/docker.pid /var/run/docker.pid; do
  p=; { read -r p <"$R$f"; } 2>/dev/null
  [ -n "$p" ] && [ -r "$R/proc/$p/limits" ] && { sed 's/^/engine	/' "$R/proc/$p/limits"; break; }
done
exit 0
"""


def parse_limits(section: Section) -> Reading[Limits]:
    """Read soft limits from /proc/PID/limits."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    mine, engine = soft_limits(found.get("login", ())), soft_limits(found.get("engine", ()))
    if not mine:
        return Unknown("no limits in /proc/self/limits", section.first)
    limits = Limits(mine.get("memlock"), mine.get("files"), mine.get("processes"), engine)
    return Known(limits, f"memlock {shown(limits.memlock)}, files {shown(limits.files)}")


_LIMITS = {
    "Max locked memory": "memlock",
    "Max open files": "files",
    "Max processes": "processes",
}


def soft_limits(lines: tuple[str, ...]) -> dict[str, int]:
    """Return soft limits by our own names out of lines of /proc/PID/limits."""
    found: dict[str, int] = {}
    for line in lines:
        match = re.match(r"(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", line)
        soft = limit(match.group(2)) if match else None
        if match and match.group(1) in _LIMITS and soft is not None:
            found[_LIMITS[match.group(1)]] = soft
    return found


def shown(value: int | None) -> str:
    """Return a limit in words."""
    return "not told" if value is None else "unlimited" if value < 0 else str(value)


STUCK = r"""
[ -r "$R/proc/self/stat" ] || [ -r "$R/proc/1/stat" ] || { echo "no /proc"; exit 4; }
for f in "$R"/proc/[0-9]*; do
  l=; { read -r l <"$f/stat"; } 2>/dev/null
  case ${l##*) } in D*) c=${l#*(}; printf 'stuck\t%s\t%s\n' "${f##*/}" "${c%)*}" ;; esac
done
printf 'end\tof processes\n'
"""


def parse_stuck(section: Section) -> Reading[Stuck]:
    """Return the processes in state D."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    if "end\tof processes" not in answer.value:
        return Unknown("the list of processes was cut off", section.first)
    lines = [row for row in rows(answer.value) if row[0] == "stuck" and len(row) == 3]
    names = tuple(f"{name} ({pid})" for _, pid, name in lines)
    return Known(Stuck(names), ", ".join(names) or "no process is stuck")


KERNELS = (
    GET
    + r"""
get "$R/proc/sys/kernel/osrelease"; [ -n "$v$R" ] || v=$(uname -r); say running "$v"
for f in "$R"/lib/modules/*; do
  [ -e "$f/modules.dep" ] || [ -d "$f/kernel" ] || continue
  n=$(find "$f" -name 'nvidia.ko*' 2>/dev/null | head -n 1)
  printf 'kernel\t%s\t%s\n' "${f##*/}" "${n:+nvidia}"
done
for f in /run/reboot-required /var/run/reboot-required; do
  [ -e "$R$f" ] && { get "$R$f"; say reboot "${v:-$f}"; break; }
done
say end kernels
"""
)


def parse_kernels(section: Section) -> Reading[Kernels]:
    """Return installed kernels; absent where there is no /lib/modules to look into."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    running = first(found, "running")
    if not re.match(r"[0-9]+\.[0-9]+", running) or first(found, "end") != "kernels":
        return Unknown("no kernel release", section.first)
    pairs = [row for row in rows(answer.value) if row[0] == "kernel" and len(row) > 1]
    installed = {row[1]: len(row) > 2 and row[2] == "nvidia" for row in pairs}
    if not installed:
        return Absent("no kernel under /lib/modules")
    kernels = Kernels(running, installed, first(found, "reboot"))
    return Known(kernels, f"running {running}, newest installed {kernels.next}")


PROBES = (
    Probe("processors", Processors, PROCESSORS, parse_processors),
    Probe("limits", Limits, LIMITS, parse_limits),
    Probe("stuck", Stuck, STUCK, parse_stuck, volatile=True),
    Probe("kernels", Kernels, KERNELS, parse_kernels),
)
