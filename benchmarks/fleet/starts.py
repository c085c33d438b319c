"""How long programs take to start, in turn: wall and CPU, milliseconds, medians."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from statistics import median

from .rivals import PROJECT

START = "from bringup.doors.cli import main; main()"
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "bringup --help": (sys.executable, "-c", START, "--help"),
    "bringup explain FAB-03": (sys.executable, "-c", START, "explain", "FAB-03"),
    "invoke --list": (sys.executable, "-m", "invoke", "--list"),
    "import fabric": (sys.executable, "-c", "import fabric"),
}


def measured(reps: int = 7) -> dict[str, tuple[float, float]]:
    """Return wall and CPU of each program."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for _ in range(reps):
        for name, words in PROGRAMS.items():
            spent[name].append(_once(words))
    return {
        name: (median(wall for wall, _ in both), median(cpu for _, cpu in both))
        for name, both in spent.items()
    }


def _once(words: tuple[str, ...]) -> tuple[float, float]:
    before, began = os.times(), time.perf_counter()
    subprocess.run(words, cwd=PROJECT, check=True, capture_output=True)
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system
    return wall * 1000, (cpu - before.children_user - before.children_system) * 1000
