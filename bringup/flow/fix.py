"""Fix findings: plan their steps, apply them, read the facts again, until nothing more changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import Blocked, StalePlan, ToolError, Unreachable
from ..core.event import Event
from ..core.facts import Facts, Probe
from ..core.fixes import Choice, Fix
from ..core.host import Host
from ..core.outcome import Ended
from ..core.plan import Plan, plan_steps
from ..core.receipt import Outcome, Receipt
from ..core.remote import Looking
from ..core.rules import Finding, Level
from ..core.steps import Observation, Step
from ..decide import design, world_of
from ..edge.pool import each
from ..remedies.table import fixes_of
from ..steps.command import merged
from .apply import apply, observe
from .gather import gather
from .types import Order, Tools

ROUNDS = 4
"""Most rounds: an engine, its toolkit, its way to GPUs, and one more."""


Ask = Callable[[Host], tuple[Probe[Any], ...]]


@dataclass(frozen=True, slots=True)
class Mended:
    """What fixing came to: the host's own facts as they are now, what was done or would be."""

    own: Facts | ToolError
    fixes: tuple[Fix, ...] = ()
    rounds: tuple[Ended, ...] = ()
    error: ToolError | None = None
    failures: tuple[ToolError, ...] = ()  # of single fixes; the host goes on without them
    planned: tuple[Fix, ...] = ()  # in check mode: what would be done, and what may follow from it

    def facts(self) -> Facts:
        """Return the host's facts; raises what stood in the way of looking."""
        if isinstance(self.own, ToolError):
            raise self.own
        return self.own

    def ended(self, host: Host, plan: Plan | None = None) -> Ended:
        """Return how the host came out, as far as fixing goes."""
        last = self.rounds[-1].plan if self.rounds else None
        error = self.error or next(iter(self.failures), None)
        return Ended(host.name, plan or last, error=error, fixes=self.fixes, rounds=self.rounds)


NOTHING = Mended(Facts())
"""Where nothing was to be fixed."""


def mend_all(
    tools: Tools, order: Order, hosts: Iterable[Host], *, ask: Ask
) -> Mapping[str, Mended]:
    """Look at hosts and fix what was chosen on the ordered ones; {} where nothing is to be fixed.

    One host's failure stops that host alone.
    """
    if order.fix is None:
        return {}
    facts = gather(tools, hosts, ask)
    known = {name: found for name, found in facts.items() if isinstance(found, Facts)}
    done = {name: Mended(found) for name, found in facts.items()}

    def work(host: Host) -> Mended:
        return mend(tools, order, host, known, ask=ask)

    ordered = [host for host in order.hosts if host.name in known]
    for outcome in each(ordered, work, limit=tools.limit):
        name, error = outcome.item.name, outcome.error
        if isinstance(error, ToolError):
            done[name] = Mended(known[name], error=error.at(host=name))
        elif error is not None:
            raise error
        elif outcome.value is not None:
            done[name] = outcome.value
    return done


def mend(tools: Tools, order: Order, host: Host, facts: Mapping[str, Facts], *, ask: Ask) -> Mended:
    """Fix what was chosen on one host; in check mode, say what the first round would do.

    A fix that fails is left out from then on, and does not hold up the others.
    """
    rounds: list[Ended] = []
    failed: dict[str, ToolError] = {}
    moved: set[str] = set()
    done: dict[str, Fix] = {}
    while True:
        findings, fixes = _fixes(order, host, facts)
        fixes = tuple(_after(fix, failed) for fix in fixes)
        taken = tuple(fix for fix in fixes if fix.is_taken)
        every = (*(fix for id_, fix in done.items() if id_ not in _ids(fixes)), *fixes)
        now = Mended(facts[host.name], every, tuple(rounds), failures=tuple(failed.values()))
        seen = _seen(tools, order, host, taken)
        if unfit := _unfit(host.name, taken, seen):
            failed |= unfit
            continue
        if order.check:
            return replace(now, planned=tuple(fix for fix in fixes if fix.is_taken or fix.after))
        plan = _plan(tools, order, host, facts, findings=findings, fixes=taken, seen=seen)
        if not plan.changes or len(rounds) - len(failed) == ROUNDS:
            return now
        receipt, record, error = apply(tools, host, plan)
        rounds.append(Ended(host.name, plan, receipt, record, error))
        done |= {fix.finding.id: fix for fix in taken}
        at_fault = _at_fault(taken, receipt) if error else ""
        lost = error if not at_fault or isinstance(error, Unreachable) else None
        if isinstance(error, StalePlan) and at_fault not in moved:
            moved.add(at_fault)  # somebody else was quicker: look again, once
        elif error and at_fault:
            failed[at_fault] = error
        fresh = lost or gather(tools, [host], ask)[host.name]
        if isinstance(fresh, ToolError):
            return replace(now, fixes=every, rounds=tuple(rounds), error=fresh)
        facts = {**facts, host.name: fresh}


def _at_fault(fixes: Iterable[Fix], receipt: Receipt) -> str:
    """Return the finding whose step failed, "" where none did."""
    failed = {step.id for step in receipt.steps if step.outcome is Outcome.FAILED}
    return next((f.finding.id for f in fixes if failed & {s.id for s in f.steps}), "")


def _after(fix: Fix, failed: Mapping[str, ToolError]) -> Fix:
    """Return a fix as it stands after a failure: left to a person, with the reason."""
    error = failed.get(fix.finding.id)
    if error is None:
        return fix
    what = error.remedy if isinstance(error, Blocked) else fix.finding.remedy
    return replace(fix, withheld=f"failed: {error.message}", commands=(what,) if what else ())


def _ids(fixes: Iterable[Fix]) -> set[str]:
    return {fix.finding.id for fix in fixes}


def _fixes(
    order: Order, host: Host, facts: Mapping[str, Facts]
) -> tuple[tuple[Finding, ...], tuple[Fix, ...]]:
    deployment = order.deployments.get(host.name)
    findings = design(order.inventory, host, deployment, facts, order.set).findings
    role = deployment.role_of(host.name) if deployment else None
    world = world_of(order.inventory, host, facts[host.name], deployment, role)
    return findings, fixes_of(world, findings, order.fix or Choice())


def _steps(fixes: Iterable[Fix]) -> tuple[Step, ...]:
    return merged(step for fix in fixes for step in fix.steps)


def _seen(
    tools: Tools, order: Order, host: Host, fixes: tuple[Fix, ...]
) -> Mapping[str, Observation]:
    """Look how the host stands to the steps of fixes; in check mode only at files to be edited."""
    steps = tuple(step for step in _steps(fixes) if step.edit is not None or not order.check)
    if order.check and not steps:
        return {}
    tools.listen(Event(host.name, "observe", f"{len(steps)} steps of fixes"))
    return observe(tools, Looking(tools.fleet.remote(host.name)), host, steps)


def _unfit(
    host: str, fixes: Iterable[Fix], seen: Mapping[str, Observation]
) -> dict[str, ToolError]:
    """Return the fixes whose file cannot be edited, and why: they hold up no others."""
    found: dict[str, ToolError] = {}
    for fix in fixes:
        edits = tuple(step for step in fix.steps if step.edit is not None)
        try:
            plan_steps(edits, seen)
        except Blocked as error:
            found[fix.finding.id] = error.at(host=host)
    return found


def _plan(
    tools: Tools,
    order: Order,
    host: Host,
    facts: Mapping[str, Facts],
    *,
    findings: tuple[Finding, ...],
    fixes: tuple[Fix, ...],
    seen: Mapping[str, Observation],
) -> Plan:
    from .provision import facts_digest

    steps = _steps(fixes)
    return Plan(
        host=host.name,
        tool=tools.version,
        inventory=order.inventory.folder,
        facts=facts_digest(facts[host.name]),
        findings=cleared(findings, fixes),
        decisions=(),
        steps=plan_steps(steps, seen),
    )


def cleared(findings: Iterable[Finding], fixes: Iterable[Fix]) -> tuple[Finding, ...]:
    """Return findings as the fixes of this run leave them: what one of them clears blocks no more.

    One that may be gone after other fixes says after which, and is judged when they are done.
    """
    told = {fix.finding.id: fix for fix in fixes}

    def one(finding: Finding) -> Finding:
        fix = told.get(finding.id)
        if finding.level is Level.OK or fix is None or not (fix.is_taken or fix.after):
            return finding
        level = Level.WARN if finding.level is Level.BLOCK else finding.level
        does = f"--fix does it: {fix.title}"
        waits = f"--fix looks again after {', '.join(fix.after)}"
        return replace(finding, level=level, remedy=does if fix.is_taken else waits)

    return tuple(map(one, findings))
