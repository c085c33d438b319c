"""Who holds a lock file, as the kernel tells it."""

from __future__ import annotations

from pathlib import Path

LOCKS = Path("/proc/locks")
"""A line a lock: ``1: FLOCK  ADVISORY  WRITE 708 08:01:1321 0 EOF``, see proc_locks(5)."""


def holder(lock: Path) -> int | None:
    """Return the process with a `flock` on a file; None where the kernel does not tell."""
    try:
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return None
    inode = str(lock.stat().st_ino)
    for line in lines:
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == inode and int(words[4]) > 0:
            return int(words[4])
    return None
