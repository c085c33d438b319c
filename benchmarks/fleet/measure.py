"""Run a command and print what it and all that it started cost, as one JSON object.

    python measure.py LIMIT_S LOG WORDS…

Processes that put themselves into the background (a ControlMaster) come to this one, are ended
after the command and counted. Memory is the sum of what the processes alone hold (RssAnon),
sampled 20 times a second: pages that forks share count for each of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PERIOD_S = 0.05


def descendants(pid: int) -> list[int]:
    """Return every process below a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def anonymous_kib(pid: int) -> int:
    """Return the anonymous memory of one process, 0 for one that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1])
    return 0


class Sampler:
    """Keeps the most memory that this process's descendants held together."""

    def __init__(self) -> None:
        self.most_kib = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._over.wait(PERIOD_S):
            now = sum(map(anonymous_kib, descendants(os.getpid())))
            self.most_kib = max(self.most_kib, now)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def end_all() -> None:
    """End and wait for whatever the command has left."""
    for pid in descendants(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def main(limit_s: float, log: str, words: list[str]) -> None:
    """Measure one command."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    sampler, began = Sampler(), time.monotonic()
    with Path(log).open("wb") as stream:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = 124
    wall_s = time.monotonic() - began
    sampler.stop()
    end_all()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = {"wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime,
            "peak_mb": sampler.most_kib / 1024, "code": code}  # fmt: skip
    print(json.dumps(told))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2], sys.argv[3:])
