"""Gather, decide, observe, plan, apply, verify: for one host and for many."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.document import digest, plain
from ..core.errors import ToolError
from ..core.event import Event
from ..core.facts import Facts, Probe
from ..core.fixes import Fix
from ..core.host import Deployment, Host
from ..core.outcome import Ended
from ..core.plan import Plan, plan_steps
from ..core.remote import Looking
from ..core.rules import World
from ..core.steps import Step, Write
from ..core.words import HostPath
from ..decide import Design, Part, design
from ..edge.pool import ItemOutcome, each
from ..engines.spec import UNIT
from ..engines.values import values
from ..probes import ALL
from ..probes.access import HostKey
from ..probes.scope import Scope, questions, scope_of
from ..rules import ports
from ..steps.command import merged
from ..steps.file import file_step, text_file
from .apply import apply, observe
from .bundle_place import bundle_steps, refusals
from .engine import answered
from .fix import NOTHING, Mended, cleared, mend_all
from .gather import look, seen
from .image_place import placement, routed
from .types import Order, Tools


@dataclass(frozen=True, slots=True)
class _Look:
    """A host to be looked at."""

    host: Host


@dataclass(frozen=True, slots=True)
class _Make:
    """A host to be planned and changed, by the facts of all that it is compared with."""

    host: Host
    facts: Mapping[str, Facts | ToolError]


def provision(
    tools: Tools, order: Order, *, ended_on: Callable[[Ended], None] = lambda _: None
) -> tuple[Ended, ...]:
    """Bring hosts to what the inventory wants of them; in check mode, say what would change.

    All hosts of a deployment are looked at, since rules compare them; only the ordered ones are
    changed. A host waits for the others of its deployment, and for nobody else; one host's
    failure stops that host alone. `ended_on` hears of each host as soon as it is done. Where
    findings are to be fixed, all hosts are fixed before any is planned, so that a pair is planned
    from what both have become.
    """
    facts: dict[str, Facts | ToolError] = {}
    ended: dict[str, Ended] = {}
    probes = probes_of(order)
    mended = mend_all(tools, order, needed(order), ask=probes)

    def work(task: _Look | _Make) -> Facts | Ended:
        done = mended.get(task.host.name, NOTHING)
        if isinstance(task, _Make):
            return _one(tools, order, task.host, task.facts, done)
        return look(tools, task.host, probes) if done is NOTHING else done.facts()

    def then(outcome: ItemOutcome[_Look | _Make, Facts | Ended]) -> Iterator[_Make]:
        name, value = outcome.item.host.name, outcome.value
        if isinstance(outcome.item, _Look):
            own = value if isinstance(value, Facts) else None
            facts[name] = seen(tools, name, own, outcome.error)
            yield from _ready(order, facts, name)
            return
        ended[name] = _ended(name, value, outcome.error)
        ended_on(ended[name])

    looks: list[_Look | _Make] = [_Look(host) for host in needed(order)]
    deque(each(looks, work, limit=tools.limit, then=then), maxlen=0)
    return tuple(ended[host.name] for host in order.hosts)


def _ready(order: Order, facts: Mapping[str, Facts | ToolError], name: str) -> Iterator[_Make]:
    """Yield the ordered hosts that waited for this one alone."""
    deployment = order.deployments.get(name)
    others = {peer for peer, theirs in order.deployments.items() if theirs is deployment}
    together = others if deployment else {name}
    if together <= facts.keys():
        known = {peer: facts[peer] for peer in facts if peer in together}
        yield from (_Make(host, known) for host in order.hosts if host.name in together)


def probes_of(order: Order) -> Callable[[Host], tuple[Probe[Any], ...]]:
    """Return what says which questions a host is asked: all, and those its deployment adds."""

    def ask(host: Host) -> tuple[Probe[Any], ...]:
        deployment = order.deployments.get(host.name)
        if deployment is None:
            return questions(Scope(deep=order.deep))
        return questions(_scope(order, deployment, host))

    return ask


def _scope(order: Order, deployment: Deployment, host: Host) -> Scope:
    """Return what a deployment adds; the ports of peers are tried only when asked to look deep."""
    worlds = (World(host, Facts(), None, deployment, r) for r in deployment.roles_of(host.name))
    taken = [port for world in worlds for port in ports.planned(world).values()]
    reach = ports.peers(deployment, host.name, order.inventory.hosts) if order.deep else ()
    return scope_of(deployment, ports=taken, reach=reach, deep=order.deep)


def needed(order: Order) -> tuple[Host, ...]:
    """Return the ordered hosts and their peers, in the order of the inventory."""
    names = {host.name for host in order.hosts} | set(order.deployments)
    return tuple(host for name, host in order.inventory.hosts.items() if name in names)


def _ended(host: str, value: object, error: Exception | None) -> Ended:
    if isinstance(error, ToolError):
        return Ended(host, error=error.at(host=host))
    if error is not None:
        raise error
    return value if isinstance(value, Ended) else Ended(host)


def _one(
    tools: Tools,
    order: Order,
    host: Host,
    facts: Mapping[str, Facts | ToolError],
    mended: Mended,
) -> Ended:
    own = facts[host.name]
    if mended.error:
        return mended.ended(host)
    if isinstance(own, ToolError):
        return Ended(host.name, error=own)
    known = {name: found for name, found in facts.items() if isinstance(found, Facts)}
    plan = make_plan(tools, order, host, known, first=mended.planned)
    if order.check or plan.blocks or not plan.changes:
        tools.listen(Event(host.name, "plan", "done", is_end=True))
        return mended.ended(host, plan)
    order.approve(plan)
    receipt, record, error = apply(tools, host, plan)
    tools.listen(Event(host.name, "apply", "done", is_end=True))
    ended = mended.ended(host, plan)
    return replace(ended, receipt=receipt, record=record, error=error or ended.error)


def make_plan(
    tools: Tools,
    order: Order,
    host: Host,
    facts: Mapping[str, Facts],
    *,
    first: tuple[Fix, ...] = (),
) -> Plan:
    """Return the plan for one host: decide, render, and look how the host stands to each step.

    The steps of fixes come `first`, and a finding that one of them clears blocks no longer.
    """
    tools.listen(Event(host.name, "decide"))
    deployment = order.deployments.get(host.name)
    asked = answered(tools, deployment.image) if deployment else ()
    found = design(order.inventory, host, deployment, facts, order.set, asked=asked)
    bundles = bundle_steps(order.inventory, host, deployment)
    image = placement(tools, host, deployment, facts)
    fixes = (step for fix in first for step in fix.steps)
    steps = merged((*fixes, *image.steps, *bundles, *steps_of(tools, found)))
    tools.listen(Event(host.name, "observe", f"{len(steps)} steps"))
    seen = observe(tools, Looking(tools.fleet.remote(host.name)), host, steps)
    steps, refused = routed(tools, host, image, steps, seen, engine_comes=bool(first))
    findings = image.judged(cleared(found.findings, first), order)
    return Plan(
        host=host.name,
        tool=tools.version,
        inventory=order.inventory.folder,
        facts=facts_digest(facts[host.name]),
        findings=(*findings, *refused, *refusals(host, bundles, seen)),
        decisions=found.decisions,
        steps=plan_steps(steps, seen),
    )


def steps_of(tools: Tools, found: Design) -> tuple[Step, ...]:
    """Return the steps of a design: the script of every part, and its secrets where it has any."""
    return tuple(step for part in found.parts for step in _scripts(tools, part))


def _scripts(tools: Tools, part: Part) -> Iterator[Step]:
    spec, world = part.spec, part.world
    if world.deployment is None or world.role is None:
        return
    made_by = f"bringup {tools.version}"
    given = values(spec, world, world.deployment, world.role, tool=made_by)
    text = tools.renderer.text(spec.template, given)
    if spec.secrets:
        write = Write(HostPath(spec.secrets_file), spec.secrets_text.encode(), 0o600, secret=True)
        yield file_step(write, title=f"keep the secrets of {spec.script_name}")
    yield text_file(spec.script, text, mode=0o755, title=f"write {spec.script}")
    if spec.unit:
        unit = tools.renderer.text(UNIT, given)
        yield text_file(spec.unit, unit, title=f"write {spec.unit_name}")


def facts_digest(facts: Facts) -> str:
    """Return the digest of what does not move by nature.

    How the host's key was trusted is left out: a first use makes it a known one.
    """
    moving = {probe.fact for probe in ALL if probe.volatile} | {HostKey}
    kept = {t.__name__: plain(r) for t, r in facts.readings.items() if t not in moving}
    return digest(kept)
