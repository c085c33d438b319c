"""Observe, plan and apply steps on a host the way the flow does, without a fleet around it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from bringup.core.plan import Planned, plan_steps
from bringup.core.script import compose, split
from bringup.core.steps import Observation, Run, State, Step, Write, observed
from bringup.edge.host_files import tar_of, trip, write_script
from bringup.edge.hostscripts import run_script


class Shell(Protocol):
    """Runs a script with some input; exit code and text."""

    def __call__(self, script: str, stdin: bytes = b"") -> tuple[int, str]: ...


def here(script: str, stdin: bytes = b"") -> tuple[int, str]:
    """Run a script on this machine."""
    done = subprocess.run(["sh", "-c", script], input=stdin, capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def plan(steps: Iterable[Step], *, root: str = "/", shell: Shell = here) -> tuple[Planned, ...]:
    """Return the plan of steps, all observed in one trip."""
    every = tuple(steps)
    _, text = shell(compose([step.ask for step in every], nonce="n", root=root))
    answer = split(text, nonce="n")
    seen: dict[str, Observation] = {s.id: observed(s, answer[s.id]) for s in every}
    return plan_steps(every, seen)


def act(planned: Planned, *, root: str = "/", shell: Shell = here) -> tuple[int, str]:
    """Do what a step says; return the exit code and text of the last command."""
    code, text = 0, ""
    for action in planned.step.actions:
        if isinstance(action, Write):
            script = write_script(trip((action,)), root=root, nonce="n")
            code, text = shell(script, b"".join(tar_of(trip((action,)))))
        elif isinstance(action, Run):
            code, text = shell(run_script(action, root=root), action.input)
    return code, text


def settle(steps: Iterable[Step], *, root: str = "/", shell: Shell = here) -> tuple[Planned, ...]:
    """Apply what differs, and return the plan of a second look."""
    every = tuple(steps)
    for planned in plan(every, root=root, shell=shell):
        if planned.is_change:
            code, text = act(planned, root=root, shell=shell)
            assert code == 0, f"{planned.step.title}: {text}"
    return plan(every, root=root, shell=shell)


def states(planned: Iterable[Planned]) -> list[State]:
    return [one.observation.state for one in planned]


def write(root: Path, path: str, text: str) -> Path:
    """Write a file below a root folder."""
    place = root / path.strip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place
