"""Which runs fit into the time there is. Pure.

Every run is expected to take as long as its tool has needed so far for the same job, in proportion
to the first guess; so the guesses only have to be right among themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from .report import Run

SET_UP_S = (8.0, 0.2)
"""What a fleet takes to start, time its lines and stop: seconds, and more for each host."""

AROUND_S = (0.1, 0.012)
"""What it takes to prepare a run and to see that it was right: seconds, and more for each host."""

GUESSES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("bringup", "facts"): (0.4, 0.03),
    ("bringup", "same"): (0.5, 0.03),
    ("bringup", "deploy"): (0.6, 0.06),
    ("ssh", "facts"): (0.3, 0.07),
    ("ssh", "same"): (0.5, 0.10),
    ("ssh", "deploy"): (0.6, 0.14),
    ("asyncssh", "facts"): (0.5, 0.03),
    ("asyncssh", "same"): (0.6, 0.03),
    ("asyncssh", "deploy"): (0.7, 0.08),
    ("fabric", "facts"): (0.5, 0.04),
    ("fabric", "same"): (0.6, 0.04),
    ("fabric", "deploy"): (0.8, 0.09),
    ("pyinfra", "facts"): (2.0, 0.3),
    ("pyinfra", "same"): (3.5, 0.5),
    ("pyinfra", "deploy"): (5.0, 0.45),
    ("ansible", "facts"): (1.8, 0.35),
    ("ansible", "same"): (8.0, 8.0),
    ("ansible", "deploy"): (8.0, 9.0),
}
"""Seconds of a run, and more for each host, on two cores. Only a start: see `expected`."""

LEAST = {"bringup": 3}
"""Runs that the first round has of a tool, where it is not one."""

FIRST_SHARE = 0.85
"""Most of the time that goes to first runs; the rest is for repetitions."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One tool at one job on one fleet."""

    hosts: int
    rtt_ms: float
    tool: str
    job: str


def expected(case: Case, runs: Iterable[Run]) -> float:
    """Return how many seconds a run will take."""
    same = [r for r in runs if (r.tool, r.job) == (case.tool, case.job)]
    near = [r for r in same if r.hosts >= case.hosts / 10] or same
    pace = median(r.wall_s / guess(r.tool, r.job, r.hosts) for r in near) if near else 1.0
    return guess(case.tool, case.job, case.hosts) * pace


def guess(tool: str, job: str, hosts: int) -> float:
    """Return the first guess for a run."""
    start, each = GUESSES[tool, job]
    return start + each * hosts


def counts(
    cases: Iterable[Case], seconds: float | None, reps: int, runs: Iterable[Run] = ()
) -> dict[Case, int]:
    """Return how often each case is run within the time; 0 for those that do not fit.

    Every case once, short ones first; then again those that have taken the least time so far.
    """
    done = tuple(runs)
    takes = {case: expected(case, done) + AROUND_S[0] + AROUND_S[1] * case.hosts for case in cases}
    if seconds is None:
        return dict.fromkeys(takes, reps)
    fleets = {(case.hosts, case.rtt_ms) for case in takes}
    left = seconds - sum(SET_UP_S[0] + SET_UP_S[1] * hosts for hosts, _ in fleets)
    found = dict.fromkeys(takes, 0)
    room = left * FIRST_SHARE
    for case in sorted(takes, key=lambda case: (takes[case], case)):
        count = min(reps, LEAST.get(case.tool, 1))
        if takes[case] * count <= room:
            found[case] = count
            room -= takes[case] * count
            left -= takes[case] * count
    return _repeated(found, takes, left, reps)


def _repeated(
    found: dict[Case, int], takes: dict[Case, float], left: float, reps: int
) -> dict[Case, int]:
    """Return the counts with as many repetitions as fit into the time that is left."""
    while True:
        open_ = [case for case, n in found.items() if 0 < n < reps and takes[case] <= left]
        if not open_:
            return found
        case = min(open_, key=lambda case: (takes[case] * found[case], case))
        found[case] += 1
        left -= takes[case]
