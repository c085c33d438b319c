"""Which runs fit into the time there is. Pure.

Every run is expected to take as long as its tool has needed so far for the same job, in proportion
to the first guess; so the guesses only have to be right among themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from .report import Run

SET_UP_S = (2.0, 0.15)
"""What a fleet takes to start and stop: seconds, and more for each host."""

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

FIRST_SHARE = 0.7
"""Most of the time that goes to first runs; the rest is for repetitions of the short ones."""


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

    Short runs come first: every case once, then again for as long as there is time.
    """
    done = tuple(runs)
    order = sorted((expected(case, done), case) for case in cases)
    if seconds is None:
        return {case: reps for _, case in order}
    fleets = {(case.hosts, case.rtt_ms) for _, case in order}
    left = seconds - sum(SET_UP_S[0] + SET_UP_S[1] * hosts for hosts, _ in fleets)
    found = {case: 0 for _, case in order}
    for number in range(reps):
        room = left * FIRST_SHARE if number == 0 and reps > 1 else left
        for takes, case in order:
            if takes <= room and found[case] == number:
                found[case] += 1
                room -= takes
                left -= takes
    return found
