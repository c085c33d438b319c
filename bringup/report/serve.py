"""What was started and stopped, how workers stand, and what they said, for people and machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.outcome import Ended
from ..core.plan import Planned
from ..core.reading import Known, Reading, Unknown, why_not
from ..core.receipt import Outcome
from ..core.rules import Level
from ..core.steps import State
from ..edge.names import fold
from ..serve.standing import Standing
from .probe import finding_view
from .ready import span

COLOURS = {"runs": "green", "drifted": "yellow", "foreign": "red", "unknown": "magenta"}


def acts_view(ended: Iterable[Ended]) -> RenderableType:
    """Return a line for each worker: what was done, or that it stands as wished; and refusals."""
    rows: list[RenderableType] = []
    for one in ended:
        plan = one.plan
        if plan is None:
            rows.append(Text(f"{one.host}  not looked at: see the error below", "red"))
            continue
        rows += [finding_view(f) for f in plan.findings if f.level is not Level.OK]
        if plan.blocks:
            names = ", ".join(sorted({finding.id for finding in plan.blocks}))
            rows.append(Text(f"{one.host}  refused by {names}: nothing was done here", "bold red"))
            continue
        rows += [_act(one, planned) for planned in plan.steps]
    return Group(*rows)


def _act(one: Ended, planned: Planned) -> RenderableType:
    line = Text(f"{one.host}  ", "bold").append(planned.step.title, "")
    if planned.observation.state is State.SAME:
        return line.append("  already so", "dim")
    if one.receipt is None:
        was = planned.observation.found or planned.observation.why
        return line.append(f"  would be done (now: {short(was)})", "yellow")
    done = next((d for d in one.receipt.steps if d.id == planned.step.id), None)
    outcome = done.outcome if done else Outcome.NOT_REACHED
    colour = "green" if outcome is Outcome.CHANGED else "red"
    spent = f"  {done.seconds:.1f} s" if done else ""
    word = "done" if outcome is Outcome.CHANGED else outcome.value
    return line.append(f"  {word}", colour).append(spent, "dim")


Turns = Sequence[tuple[str, tuple[str, ...]]]
"""Role and hosts of each worker of a restart."""


def left_view(deployment: str, left: Turns) -> RenderableType:
    """Return where a restart stopped: the first of `left` did not come back, the rest runs on."""
    (role, hosts), *others = left
    line = Text(no_wrap=True, overflow="ignore")  # the command is to be pasted whole
    line.append(f"stopped at {role} on {fold(hosts)}", "bold red")
    if others:
        untouched = ", ".join(f"{name} on {fold(where)}" for name, where in others)
        line.append(f"\n  not restarted yet: {untouched} (runs as before)", "")
    names = " ".join(f"--host {host}" for _, where in left for host in where)
    roles = " ".join(f"--role {name}" for name in dict.fromkeys(name for name, _ in left))
    again = f"bringup serve.restart --deployment {deployment} {roles} {names}"
    return line.append(f"\n  do       mend what stands above, then:\n           {again}", "green")


def left_document(deployment: str, left: Turns) -> dict[str, Any]:
    """Return which workers a restart has not done, as plain data."""
    rows = [{"role": role, "hosts": list(hosts)} for role, hosts in left]
    return {"schema": "bringup.serve-restart/1", "deployment": deployment, "left": rows}


def short(found: str) -> str:
    """Return a state with its digest cut, as people compare them."""
    return " ".join(word[:19] if word.startswith("sha256:") else word for word in found.split())


def status_view(standings: Iterable[Standing]) -> RenderableType:
    """Return a row for each worker."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    for _ in range(5):
        table.add_column(overflow="fold")
    for one in standings:
        worker, run = one.worker, one.run
        age = run.value.age_s if isinstance(run, Known) else None
        why = run.why if isinstance(run, Unknown) else ""
        table.add_row(
            Text(worker.host, "bold"),
            Text(worker.role),
            Text(one.word, COLOURS.get(one.word, "red")),
            Text("" if age is None else span(age), "dim"),
            Text(why or "; ".join((worker.name, *one.drift)), "dim"),
        )
    return table


def status_document(deployment: str, standings: Iterable[Standing]) -> dict[str, Any]:
    """Return how workers stand as plain data."""
    return {
        "schema": "bringup.serve-status/1",
        "deployment": deployment,
        "workers": [_standing(one) for one in standings],
    }


def _standing(one: Standing) -> dict[str, Any]:
    run = one.run.value if isinstance(one.run, Known) else None
    return {
        "host": one.worker.host,
        "role": one.worker.role,
        "name": one.worker.name,
        "state": one.word,
        "why": one.run.why if isinstance(one.run, Unknown) else None,
        "exit": run.exit if run else None,
        "age_s": run.age_s if run else None,
        "config": run.config if run else None,
        "wanted": one.worker.config,
        "image": run.held.value.made_from if run and isinstance(run.held, Known) else None,
        "drift": list(one.drift),
    }


def logs_view(found: Mapping[str, Reading[tuple[str, ...]]]) -> RenderableType:
    """Return each worker's lines under its name; each stays on one line, for a search."""
    rows: list[RenderableType] = []
    for key, reading in sorted(found.items()):
        rows.append(Text(f"{key}", "bold"))
        if isinstance(reading, Known):
            rows += [Text(f"  {line}", no_wrap=True, overflow="ignore") for line in reading.value]
            rows += [] if reading.value else [Text("  (nothing)", "dim")]
        else:
            rows.append(Text(f"  unknown: {why_not(reading)}", "yellow"))
    return Group(*rows)
