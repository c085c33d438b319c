"""Host memory, for the hierarchical cache."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class Memory:
    """Host memory in MiB; available excludes huge pages."""

    total_mib: int
    available_mib: int
    swap_total_mib: int | None = None
    hugepages_mib: int | None = None


def parse(section: Section) -> Reading[Memory]:
    """Return memory from the text of /proc/meminfo, whole or some of its lines."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    kib = {name: int(size) for name, size in re.findall(r"(?m)^(\w+):\s+(\d+) kB", section.text)}
    if "MemTotal" not in kib or "MemAvailable" not in kib:
        return Unknown("/proc/meminfo lacks MemTotal or MemAvailable", section.first)
    pages = re.search(r"(?m)^HugePages_Total:\s+(\d+)", section.text)
    size = kib.get("Hugepagesize")
    memory = Memory(
        kib["MemTotal"] // 1024,
        kib["MemAvailable"] // 1024,
        swap_total_mib=kib["SwapTotal"] // 1024 if "SwapTotal" in kib else None,
        hugepages_mib=int(pages[1]) * size // 1024 if pages and size else None,
    )
    return Known(memory, f"MemAvailable {memory.available_mib} MiB of {memory.total_mib} MiB")


PROBE = Probe("memory", Memory, "cat /proc/meminfo", parse, volatile=True)
