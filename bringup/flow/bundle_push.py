"""Place a bundle in many folders at once: look, push where it differs, look again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..bundle.reports import Placed, PushOutcome
from ..bundle.step import HOLDS_WEIGHTS, bundle_step, refusal
from ..core.errors import Blocked, ToolError, VerifyFailed
from ..core.event import Event, Listen, ignore
from ..core.host import Host
from ..core.remote import Remote
from ..core.steps import Observation, Push, Run, State, Step, observed
from ..edge import pool
from ..edge.bundle_files import Opened
from ..edge.pool import each
from ..edge.site import site_of

AT_ONCE = 32
"""Targets served at the same time."""


@dataclass(frozen=True, slots=True)
class PushTarget:
    """One folder to place a bundle in: a frontend's host, or one that mounts a shared folder."""

    host: Host
    path: str
    remote: Remote

    @property
    def name(self) -> str:
        return f"{self.host.name}:{self.path}"


def step_of(bundle: Opened, path: str, *, replace: bool = False, why: str = "") -> Step:
    """Return the step that places a bundle, for a plan that has other steps as well."""
    return bundle_step(
        bundle.manifest, str(bundle.path), bundle.sha256, path, replace=replace, why=why
    )


def push(
    bundle: Opened,
    targets: Iterable[PushTarget],
    *,
    check: bool = False,
    replace: bool = False,
    listen: Listen = ignore,
    at_once: int = AT_ONCE,
) -> tuple[Placed, ...]:
    """Place a bundle in every target, side by side; one that fails stops that one alone.

    An unchanged target costs one round trip. With `check` nothing is written.
    """
    rows = tuple(targets)
    size = bundle.path.stat().st_size

    def one(target: PushTarget) -> Placed:
        return _placed(bundle, target, size, check=check, replace=replace, listen=listen)

    ended = {
        outcome.item: _ended(rows[outcome.item], outcome)
        for outcome in each(range(len(rows)), lambda number: one(rows[number]), limit=at_once)
    }
    return tuple(ended[number] for number in range(len(rows)))


def _ended(target: PushTarget, outcome: pool.ItemOutcome[int, Placed]) -> Placed:
    """Return how a target came out, also when it was not reached before an interruption."""
    if outcome.value is not None:
        return outcome.value
    if isinstance(outcome.error, ToolError):
        return Placed(target.host.name, target.path, PushOutcome.FAILED, error=outcome.error)
    raise outcome.error or AssertionError("an outcome is a value or an error")


def _placed(
    bundle: Opened, target: PushTarget, size: int, *, check: bool, replace: bool, listen: Listen
) -> Placed:
    began = time.monotonic()
    step = step_of(bundle, target.path, replace=replace)
    found, place = "", (target.host.name, target.path)
    try:
        listen(Event(target.host.name, "observe", target.path))
        before = observe(target, step)
        found = before.found or before.why
        outcome = _act(
            target, step, before, check=check, replace=replace, report=_bytes(target, size, listen)
        )
    except ToolError as error:
        error.at(host=target.host.name, step=step.id)
        listen(Event(target.host.name, "push", error.message, is_end=True))
        return Placed(*place, PushOutcome.FAILED, found, time.monotonic() - began, error=error)
    listen(Event(target.host.name, "push", outcome.value, 1.0, is_end=True))
    sent = size if outcome is PushOutcome.CHANGED else 0
    return Placed(*place, outcome, found, time.monotonic() - began, sent)


def observe(target: PushTarget, step: Step) -> Observation:
    """Return how a target stands to the step, in one trip."""
    section = site_of(target.host, target.remote).ask((step.ask,))[step.id]
    return observed(step, section)


def _act(
    target: PushTarget,
    step: Step,
    before: Observation,
    *,
    check: bool,
    replace: bool,
    report: Callable[[int], None],
) -> PushOutcome:
    if before.state is State.SAME:
        return PushOutcome.SAME
    if why := refusal(before.found, replace=replace):
        raise _refused(target, why)
    if check:
        return PushOutcome.WOULD_CHANGE
    for action in step.actions:
        match action:
            case Run():
                _guarded(target, action)
            case Push():
                target.remote.push(action, on_bytes=report)
    after = observe(target, step)
    if after.state is not State.SAME:
        raise VerifyFailed(
            f"cannot find the bundle in {target.path} after placing it: "
            f"wanted {step.wanted}, found {after.found or after.why}",
            remedy="look whether something else writes to that folder, then push again",
        )
    return PushOutcome.CHANGED


def _guarded(target: PushTarget, action: Run) -> None:
    result = target.remote.run(action)
    if result.exit not in action.answers:
        raise _refused(target, result.tail(1).removeprefix(target.path).strip())


def _refused(target: PushTarget, why: str) -> Blocked:
    remedy = "give a folder that is empty or not there yet, or add --replace"
    if why.startswith(HOLDS_WEIGHTS):
        remedy = (
            "a frontend that sees this model folder needs no bundle; compare them: "
            f"bringup bundle.check BUNDLE --folder {target.name}"
        )
    return Blocked(f"cannot place a bundle in {target.path}: it {why}", remedy=remedy)


def _bytes(target: PushTarget, size: int, listen: Listen) -> Callable[[int], None]:
    def report(sent: int) -> None:
        share = min(sent / size, 1.0) if size else 1.0
        listen(Event(target.host.name, "push", f"{sent} of {size} bytes", share))

    return report
