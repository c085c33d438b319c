"""Host memory, for the hierarchical cache, and the memory that processes share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from .text import answered, first, space, told, whole


@dataclass(frozen=True, slots=True)
class Memory:
    """Host memory in MiB; available excludes huge pages."""

    total_mib: int
    available_mib: int
    swap_total_mib: int | None = None
    hugepages_mib: int | None = None  # reserved for huge pages, used or not


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """The host's /dev/shm, in MiB."""

    total_mib: int
    free_mib: int


@dataclass(frozen=True, slots=True)
class MemoryErrors:
    """Memory errors that the kernel counted since boot (EDAC), over all controllers."""

    corrected: int
    uncorrected: int


def parse(section: Section) -> Reading[Memory]:
    """Read /proc/meminfo."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    kib = {name: int(size) for name, size in re.findall(_KIB, answer.value, re.MULTILINE)}
    if "MemTotal" not in kib or "MemAvailable" not in kib:
        return Unknown("/proc/meminfo lacks MemTotal or MemAvailable", section.first)
    pages = re.search(r"^HugePages_Total:\s+([0-9]{1,9})\s*$", answer.value, re.MULTILINE)
    size = kib.get("Hugepagesize")
    memory = Memory(
        kib["MemTotal"] // 1024,
        kib["MemAvailable"] // 1024,
        kib["SwapTotal"] // 1024 if "SwapTotal" in kib else None,
        int(pages[1]) * size // 1024 if pages and size else None,
    )
    line = f"MemAvailable {memory.available_mib} MiB of {memory.total_mib} MiB"
    return Known(memory, line)


_KIB = r"^([A-Za-z_()]+):\s+([0-9]{1,15}) kB\s*$"

SHARED = r"""
[ -d "$R/dev/shm" ] || { echo "absent: no folder /dev/shm"; exit 3; }
df -kP "$R/dev/shm"
"""


def parse_shared(section: Section) -> Reading[SharedMemory]:
    """Read the last line of ``df -kP``."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    row = answer.value.strip().rpartition("\n")[2]
    if (kib := space(row)) is None:
        return Unknown("df says nothing of /dev/shm", section.first)
    return Known(SharedMemory(kib[0] // 1024, kib[1] // 1024), row)


EDAC = r"""
d=$R/sys/devices/system/edac/mc
[ -d "$R/sys/devices/system" ] || { echo "no /sys/devices/system"; exit 4; }
[ -d "$d" ] || { echo "absent: the kernel counts no memory errors (no EDAC)"; exit 3; }
for f in "$d"/mc[0-9]*; do
  [ -d "$f" ] || continue
  for k in ce ue; do
    v=; { read -r v <"$f/${k}_count"; } 2>/dev/null; printf '%s\t%s\n' $k "$v"
  done
done
printf 'end\tof controllers\n'
"""


def parse_errors(section: Section) -> Reading[MemoryErrors]:
    """Sum the counters of all memory controllers; unknown where one is no number."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    corrected = [whole(value) for value in found.get("ce", ())]
    uncorrected = [whole(value) for value in found.get("ue", ())]
    numbers = [*corrected, *uncorrected]
    if first(found, "end") != "of controllers" or None in numbers or not numbers:
        return Unknown("no counter of a memory controller", section.first)
    total = MemoryErrors(sum(n or 0 for n in corrected), sum(n or 0 for n in uncorrected))
    return Known(total, f"{total.corrected} corrected, {total.uncorrected} uncorrected errors")


PROBE = Probe("memory", Memory, 'cat "$R/proc/meminfo"', parse, volatile=True)
PROBES = (
    PROBE,
    Probe("shared_memory", SharedMemory, SHARED, parse_shared, volatile=True),
    Probe("memory_errors", MemoryErrors, EDAC, parse_errors, volatile=True),
)
