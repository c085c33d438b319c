"""A plan: what was found, what was decided, and each step with from and to. Deterministic bytes.

The same inputs give the same plan, so a saved plan can be compared with a fresh one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any

from .document import digest, plain
from .edits import original, settled
from .knobs import Decision
from .rules import Finding, Level, Verdict, verdict
from .steps import Action, Carry, Observation, Observations, Push, Run, State, Step, Write
from .words import shown

SCHEMA = "bringup.plan/1"


@dataclass(frozen=True, slots=True)
class Planned:
    """A step, and how the host stands to it."""

    step: Step
    observation: Observation

    @property
    def is_change(self) -> bool:
        return self.observation.state is not State.SAME


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that would be done on one host, and why. Holds no time."""

    host: str
    tool: str
    inventory: str  # folder in use
    facts: str  # digest of the facts that are not volatile
    findings: tuple[Finding, ...]
    decisions: tuple[Decision, ...]
    steps: tuple[Planned, ...]

    @property
    def changes(self) -> tuple[Planned, ...]:
        return tuple(planned for planned in self.steps if planned.is_change)

    @property
    def blocks(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.BLOCK)

    @property
    def verdict(self) -> Verdict:
        return verdict(self.findings)

    @property
    def digest(self) -> str:
        """Digest of what would be done and on which facts; free of readings that move by nature."""
        return digest(
            {
                "host": self.host,
                "facts": self.facts,
                "findings": [(finding.id, finding.level) for finding in self.findings],
                "decisions": [(decision.knob, decision.value) for decision in self.decisions],
                "steps": [_step(planned) for planned in self.steps],
            }
        )


def plan_steps(steps: tuple[Step, ...], observations: Observations) -> tuple[Planned, ...]:
    """Return each step with its observation; one that was not observed is unknown.

    Raises Blocked where a file that a step would edit cannot be edited.
    """
    missing = Observation(State.UNKNOWN, "", why="not observed")
    planned: list[Planned] = []
    for step in steps:
        one = Planned(*settled(step, observations.get(step.id, missing)))
        planned.append(_following(one, planned))
    return tuple(planned)


def _following(one: Planned, before: list[Planned]) -> Planned:
    """Turn a step that has nothing to do into a change where one that it follows is a change."""
    leads = [p.step.title for p in before if p.is_change and p.step.id in one.step.follows]
    if one.is_change or not leads:
        return one
    why = f"after: {', '.join(leads)}"
    return Planned(one.step, replace(one.observation, state=State.CHANGE, why=why))


def document(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain data with its schema; contents of files as their sums."""
    return {
        "schema": SCHEMA,
        "tool": plan.tool,
        "host": plan.host,
        "verdict": plan.verdict.value,
        "inventory": plan.inventory,
        "facts": plan.facts,
        "findings": [plain(finding) for finding in plan.findings],
        "decisions": [plain(decision) for decision in plan.decisions],
        "steps": [_step(planned) for planned in plan.steps],
    }


def _step(planned: Planned) -> dict[str, Any]:
    step, seen = planned.step, planned.observation
    return {
        "id": step.id,
        "title": step.title,
        "state": seen.state.value,
        "from": seen.found or None,
        "to": step.wanted,
        "why": seen.why,
        "because": step.why,
        "risk": step.risk,
        "actions": [describe(action) for action in step.actions] if planned.is_change else [],
    }


def describe(action: Action) -> Mapping[str, Any]:
    """Return one action as people may see it: secrets masked, file contents as size and sum."""
    match action:
        case Run():
            return {"run": action.told or shown(action.words), "seconds": action.seconds}
        case Write():
            what = plain(action.content) if not action.secret else "***"
            return {"write": str(action.path), "mode": f"{action.mode:04o}", "content": what}
        case Push():
            return {"push": str(action.path), "sha256": action.sha256}
        case Carry():
            way = {"way": action.way, "bytes": action.sends}
            return {"ship": action.reference, "id": action.identity, **way}


def difference(planned: Planned) -> str:
    """Return a unified diff of the file that a step would write, "" where there is none to show."""
    if planned.step.content is None or not planned.is_change:
        return ""
    seen = planned.observation
    old = (original(seen.found, seen.detail) or seen.detail).splitlines(keepends=True)
    new = planned.step.content.splitlines(keepends=True)
    name = planned.step.id.removeprefix("file:")
    standing = seen.found not in ("", "absent")
    lines = unified_diff(old, new, name if standing else "/dev/null", name)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
