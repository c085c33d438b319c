"""How long what is left will take, by what took how long before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..engines.topology_load import Topology
from .table import Bench, Row
from .traffic import Traffic

Step = tuple[Topology, str]
"""A topology and what is done with it: "start", or a traffic's name."""

START = "start"


def steps(topologies: Iterable[Topology], traffic: Iterable[Traffic]) -> tuple[Step, ...]:
    """Return all that is to be done, in order."""
    names = (START, *(one.name for one in traffic))
    return tuple((topology, name) for topology in topologies for name in names)


def took(runs: Iterable[Bench]) -> dict[Step, float]:
    """Return how long each step took last, in seconds; later runs overrule earlier ones."""
    known: dict[Step, float] = {}
    for bench in runs:
        for row in bench.rows:
            known |= of_row(row)
    return known


def of_row(row: Row) -> dict[Step, float]:
    """Return how long the steps of one row took."""
    known = {(row.topology, one.traffic): one.wall_s or one.seconds for one in row.results}
    return known if row.start_s is None else {**known, (row.topology, START): row.start_s}


def expected(step: Step, known: Mapping[Step, float]) -> float | None:
    """Return how long a step may take: as before, else as the longest of another topology."""
    if step in known:
        return known[step]
    return max((seconds for (_, name), seconds in known.items() if name == step[1]), default=None)


def left(todo: Iterable[Step], known: Mapping[Step, float], spent: float = 0.0) -> float | None:
    """Return the seconds that all of it may take, the first begun `spent` ago; None: not known."""
    each = [expected(step, known) for step in todo]
    if any(one is None for one in each):
        return None
    first, *rest = [one or 0.0 for one in each] or [0.0]
    return max(0.0, first - spent) + sum(rest)


def said(step: float | None, rest: float | None, spent: float) -> str:
    """Return what to say of the time that is left, in words.

    A step that takes longer than it should (`step`, in seconds) is told as that: how long it
    will take yet, nobody knows.
    """
    if rest is None or step is None:
        return "time left not known yet"
    if spent > step:
        more = f", then {span(rest)} for the rest" if rest else ""
        return f"longer than the {span(step)} expected{more}"
    return f"{span(rest)} left in all"


def span(seconds: float) -> str:
    """Return seconds as people say them."""
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"
