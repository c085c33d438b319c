"""Control groups of hosts: one tree on a unified system, one a controller otherwise."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


def hierarchies() -> list[Path]:
    """Return the control group trees: one on a unified system, one a controller otherwise."""
    if (GROUPS / "cgroup.controllers").exists():
        return [GROUPS]
    return [tree for tree in sorted(GROUPS.iterdir()) if (tree / "cgroup.procs").exists()]


def inherit_cpuset(group: Path) -> None:
    """A v1 cpuset starts empty, and takes no process while it is."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        mine, parents = group / name, group.parent / name
        if mine.exists() and parents.exists() and not mine.read_text().strip():
            mine.write_text(parents.read_text())


def kill(processes: Path) -> None:
    with suppress(OSError):
        for pid in map(int, processes.read_text().split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def remove(name: str) -> None:
    """Remove control groups, deepest first; a group lives a little longer than its processes."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = [path for tree in hierarchies() for path in (tree / name).rglob("*")]
        groups = [*sorted((p for p in left if p.is_dir()), key=lambda p: -len(p.parts)),
                  *(tree / name for tree in hierarchies())]  # fmt: skip
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        if not any((tree / name).exists() for tree in hierarchies()):
            return
        time.sleep(0.05)
