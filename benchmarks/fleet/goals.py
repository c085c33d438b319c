"""What bringup means to reach, from measurements of other tools, and whether a run reached it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from .report import Run


@dataclass(frozen=True, slots=True)
class Live:
    """One time over an open line (see live.py), or of a start (see starts.py), in milliseconds."""

    tool: str
    what: str
    rtt_ms: float
    hosts: int
    ms: float


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and its goal. `job` and `field` name a column of the runs, else `what` a time."""

    title: str
    goal: float
    unit: str
    job: str = ""
    hosts: int = 0
    field: str = ""
    what: str = ""
    rtt_ms: float = 0.0


GOALS = (
    Goal("Facts, 100 hosts, wall", 2.5, "s", "facts", 100, "wall_s"),
    Goal("Facts, 100 hosts, controller CPU", 0.6, "s", "facts", 100, "cpu_s"),
    Goal("Nothing to change, 10 hosts, wall", 0.75, "s", "same", 10, "wall_s"),
    Goal("Nothing to change, 10 hosts, controller CPU", 0.5, "s", "same", 10, "cpu_s"),
    Goal("Nothing to change, 100 hosts, wall", 2.4, "s", "same", 100, "wall_s"),
    Goal("Nothing to change, 100 hosts, controller CPU", 0.8, "s", "same", 100, "cpu_s"),
    Goal("First deploy, 100 hosts, wall", 3.5, "s", "deploy", 100, "wall_s"),
    Goal("First deploy, 100 hosts, controller CPU", 1.4, "s", "deploy", 100, "cpu_s"),
    Goal("First deploy, 100 hosts, peak memory", 80, "MB", "deploy", 100, "peak_mb"),
    Goal("One more command, RTT 20 ms", 23, "ms", what="again", rtt_ms=20),
    Goal("One more command, RTT 0", 0.5, "ms", what="again"),
    Goal("One more `run` of Fabric's surface, RTT 0", 4, "ms", what="run"),
    Goal("Connect and 25 facts, one host, RTT 20 ms", 160, "ms", what="connect", rtt_ms=20),
    Goal("A command on 100 live hosts, RTT 20 ms", 60, "ms", hosts=100, what="all", rtt_ms=20),
    Goal("`invoke --list`", 95, "ms", what="invoke --list"),
)


def reached(goal: Goal, runs: Sequence[Run], live: Sequence[Live]) -> float | None:
    """Return our figure for a goal, None where it was not measured."""
    if goal.job:
        values = [
            getattr(run, goal.field)
            for run in runs
            if (run.tool, run.job, run.hosts, run.rtt_ms, run.fault)
            == ("bringup", goal.job, goal.hosts, goal.rtt_ms, "")
        ]
    else:
        values = [
            one.ms
            for one in live
            if (one.tool, one.what, one.rtt_ms) == ("bringup", goal.what, goal.rtt_ms)
            and goal.hosts in (0, one.hosts)
        ]
    return median(values) if values else None


def goals_table(runs: Sequence[Run], live: Sequence[Live]) -> str:
    """Return every goal with what was reached."""
    rows = ["| figure | goal | measured | measured / goal |\n|---|---|---|---|\n"]
    for goal in GOALS:
        value = reached(goal, runs, live)
        told = ("not measured", "") if value is None else (
            f"{value:.3g} {goal.unit}", f"{value / goal.goal:.2f}")  # fmt: skip
        rows.append(f"| {goal.title} | {goal.goal:g} {goal.unit} | {told[0]} | {told[1]} |\n")
    return "".join(rows)


TITLES: Mapping[str, str] = {
    "connect": "connect, log in, 25 facts, close",
    "again": "one more command",
    "run": "one more command by Fabric's `run`",
    "all": "one more command on every host",
}


def live_table(live: Sequence[Live]) -> str:
    """Return the times over open lines and of starts, tools side by side, in milliseconds."""
    tools = list(dict.fromkeys(one.tool for one in live))
    rows = [f"| what, ms | {' | '.join(tools)} |\n|---{'|---' * len(tools)}|\n"]
    places = dict.fromkeys((one.what, one.rtt_ms, one.hosts) for one in live)
    for what, rtt_ms, hosts in places:
        cells = []
        for tool in tools:
            own = [o.ms for o in live if (o.tool, o.what, o.rtt_ms, o.hosts)
                   == (tool, what, rtt_ms, hosts)]  # fmt: skip
            cells.append(f"{median(own):.3g}" if own else "")
        where = f", RTT {rtt_ms:g} ms, {hosts} hosts" if hosts else ""
        rows.append(f"| {TITLES.get(what, f'`{what}`')}{where} | {' | '.join(cells)} |\n")
    return "".join(rows)
