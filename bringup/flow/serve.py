"""Start and stop a deployment: services, prefill, decode, then what is in front of them.

Every act is a step of a plan: observed first, applied under the host's lock, observed again, kept
in a receipt. What runs as written is left alone; what is not ours is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from ..core.errors import Blocked, CommandFailed, Exit, ToolError, VerifyFailed
from ..core.event import Event
from ..core.facts import Facts
from ..core.host import Deployment, Host, Inventory, Scalar
from ..core.outcome import Ended
from ..core.plan import Plan, plan_steps
from ..core.rules import Finding
from ..core.steps import Observation, Step
from ..decide import Design, Part, design
from ..edge.pool import each
from ..engines.knobs import KNOBS
from ..readiness.stages import Worker
from ..serve import refusals
from ..serve.steps import GONE, start_step, step_id, stop_step
from ..serve.strays import strays_step
from ..serve.units import disable_step, enable_step
from .apply import apply, observe
from .death import ended_early, refused_by_engine
from .gather import gather
from .ports import taken
from .provision import facts_digest, probes_of, steps_of
from .services import await_services
from .targets import Target, chosen, part_worker, service_parts, target_of
from .types import Order, Tools


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator wants of a deployment. Empty `hosts` and `roles` mean all."""

    inventory: Inventory
    deployment: Deployment
    hosts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    check: bool = False
    recreate: bool = False
    accept: tuple[str, ...] = ()
    services: bool = False  # stop them too
    for_good: bool = True  # what is stopped stays so when its host starts
    set: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownDeployment:
    """A deployment with the facts of its hosts: its parts, and what is found on each host."""

    target: Target
    parts: Mapping[str, Part]  # by the worker's key
    designs: Mapping[str, Design]
    facts: Mapping[str, Facts]
    errors: Mapping[str, ToolError]


def know(tools: Tools, wish: Wish) -> KnownDeployment:
    """Look at all hosts of a deployment, and settle every part of it on their facts."""
    inventory, deployment = wish.inventory, wish.deployment
    names = {host for role in deployment.roles for host in role.hosts}
    hosts = [host for name, host in inventory.hosts.items() if name in names]
    order = Order(inventory, tuple(hosts), dict.fromkeys(names, deployment))
    told = gather(tools, hosts, probes_of(order))
    facts = {name: found for name, found in told.items() if isinstance(found, Facts)}
    designs = {
        host.name: design(inventory, host, deployment, facts, wish.set)
        for host in hosts
        if host.name in facts
    }
    parts = [part for found in designs.values() for part in found.parts]
    parts += service_parts(inventory, deployment)
    pairs = [(part_worker(deployment, part), part) for part in parts]
    return KnownDeployment(
        Target(inventory, deployment, tuple(worker for worker, _ in pairs)),
        {worker.key: part for worker, part in pairs},
        designs,
        facts,
        {name: error for name, error in told.items() if isinstance(error, ToolError)},
    )


def start(tools: Tools, wish: Wish) -> tuple[Ended, ...]:
    """Start what does not run, wave by wave; return how each host came out of each wave."""
    static = target_of(wish.inventory, wish.deployment)
    keys = {w.key for w in chosen(static.workers, hosts=wish.hosts, roles=wish.roles)}
    if below := _below_roots(wish, {w.host for w in static.workers if w.key in keys}):
        return below
    known = know(tools, wish)
    wanted = [worker for worker in known.target.workers if worker.key in keys]
    ended = [Ended(name, error=error) for name, error in known.errors.items()]
    stopped: set[str] = set()
    for wave in refusals.waves(wanted):
        hosts = sorted({worker.host for worker in wave} - stopped)
        came = _each(hosts, partial(_start_on, tools, wish, known, wave))
        ended += came
        stopped |= {one.host for one in came if one.code not in (Exit.DONE, Exit.WOULD_CHANGE)}
        if wave[0].is_service and not wish.check:
            if any(one.code is not Exit.DONE for one in came):
                break
            await_services(tools, known.target, {worker.role for worker in wave})
    return tuple(ended)


def _below_roots(wish: Wish, hosts: Iterable[str]) -> tuple[Ended, ...]:
    """Return a refusal for each host whose files lie below a folder: scripts name whole paths."""
    roots = {name: wish.inventory.hosts[name].root for name in sorted(hosts)}
    return tuple(
        Ended(name, error=Blocked(
            f"cannot serve on {name}: it lies under root: {root}", host=name,
            remedy="practice hosts stop at written scripts; a host that serves has no root: in "
            "hosts.yml",
        ))
        for name, root in roots.items() if root != "/"
    )  # fmt: skip


def _each(hosts: Iterable[str], work: Callable[[str], Ended]) -> list[Ended]:
    ended: list[Ended] = []
    for outcome in each(hosts, work):
        if isinstance(outcome.error, ToolError):
            ended.append(Ended(outcome.item, error=outcome.error.at(host=outcome.item)))
        elif outcome.error is not None:
            raise outcome.error
        elif outcome.value is not None:
            ended.append(outcome.value)
    return sorted(ended, key=lambda one: one.host)


def _start_on(
    tools: Tools, wish: Wish, known: KnownDeployment, wave: Iterable[Worker], name: str
) -> Ended:
    """Start the workers of one wave on one host, or tell why not."""
    host = wish.inventory.hosts[name]
    workers = [worker for worker in wave if worker.host == name]
    steps = [step for w in workers for step in _starting(w, recreate=wish.recreate)]
    written = _scripts(tools, known, workers)
    remote = tools.fleet.remote(name)
    tools.listen(Event(name, "observe", f"{len(steps)} to run"))
    seen = observe(tools, remote, host, [*written, *steps])
    findings = _findings(wish, known, workers, written, seen)
    findings += taken(tools, host, _ports(known, workers, seen))
    owned = [step for step in written if all(worker.is_service for worker in workers)]
    facts = facts_digest(known.facts[name]) if name in known.facts else ""
    planned = plan_steps((*owned, *steps), seen)
    folder = known.target.inventory.folder
    plan = Plan(name, tools.version, folder, facts, findings, (), planned)
    return _carry_out(tools, wish, known.target, host, plan)


def _ports(
    known: KnownDeployment, workers: Iterable[Worker], seen: Mapping[str, Observation]
) -> dict[str, int]:
    """Return the port of each service and front that does not run; NET-05 looks at the others."""
    return {
        worker.role: port
        for worker in workers
        if (worker.is_service or worker.is_front) and seen[step_id(worker)].found == GONE
        for port in known.parts[worker.key].spec.ports.values()
    }


def _starting(worker: Worker, *, recreate: bool) -> Iterator[Step]:
    if worker.unit:
        yield enable_step(worker)
    yield start_step(worker, recreate=recreate)


def _scripts(tools: Tools, known: KnownDeployment, workers: Iterable[Worker]) -> tuple[Step, ...]:
    """Return the steps that write these workers' scripts: to see that they are up to date."""
    steps: list[Step] = []
    for worker in workers:
        part = known.parts[worker.key]
        steps += steps_of(tools, Design(part.world.host, (), (part,)))
    return tuple({step.id: step for step in steps}.values())


def _findings(
    wish: Wish,
    known: KnownDeployment,
    workers: list[Worker],
    written: Iterable[Step],
    seen: Mapping[str, Observation],
) -> tuple[Finding, ...]:
    specs = [(worker, known.parts[worker.key].spec) for worker in workers]
    own = bool(wish.deployment.services.etcd_image)
    found = [*refusals.of_workers(specs, seen, recreate=wish.recreate)]
    idle = [worker for worker in workers if seen[step_id(worker)].found.split(" ")[0] != "running"]
    name = workers[0].host
    if idle and not idle[0].is_service and name in known.designs:
        found += refusals.of_host(
            known.designs[name].findings, accept=wish.accept, own_services=own
        )
    if not all(worker.is_service for worker in workers):
        found += refusals.scripts(name, written, seen)
    return tuple(found)


def _carry_out(tools: Tools, wish: Wish, target: Target, host: Host, plan: Plan) -> Ended:
    if wish.check or plan.blocks or not plan.changes:
        tools.listen(Event(host.name, "plan", "done", is_end=True))
        return Ended(host.name, plan)
    receipt, record, error = apply(tools, host, plan)
    tools.listen(Event(host.name, "apply", "done", is_end=True))
    return Ended(host.name, plan, receipt, record, _explained(tools, target, plan, error))


def _explained(
    tools: Tools, target: Target, plan: Plan, error: ToolError | None
) -> ToolError | None:
    """Return what went wrong with its cause, where logs, states or what was said name one."""
    starts = {p.step.title: p.step.id.partition(":")[2] for p in plan.changes}
    if isinstance(error, VerifyFailed):
        return ended_early(tools, target, plan.host, starts.values()) or error
    error = _as_refusal(error)
    if not isinstance(error, CommandFailed):
        return error
    name = starts.get(error.step, "")
    worker = next((w for w in target.on(plan.host) if w.name == name), None)
    return refused_by_engine(target, worker, error)


def _as_refusal(error: ToolError | None) -> ToolError | None:
    """A script that exits 4 has refused to start, with its reasons, and changed nothing."""
    if not isinstance(error, CommandFailed) or error.exit_code != Exit.BLOCKED:
        return error
    lines = [line.partition(": ")[2] or line for line in error.said.splitlines()]
    reasons = [line.removeprefix("cannot start: ") for line in lines if "cannot start: " in line]
    cures = [line.removeprefix("do: ") for line in lines if line.startswith("do: ")]
    return Blocked(
        f"{error.message.partition(': exit')[0]}: {'; '.join(reasons) or 'its script refuses'}",
        host=error.host, step=error.step, remedy="; ".join(dict.fromkeys(cures)),
    )  # fmt: skip


def stop(tools: Tools, wish: Wish, target: Target) -> tuple[Ended, ...]:
    """Stop what runs, in the reverse order; services stay unless they are asked for."""
    wanted = chosen(target.workers, hosts=wish.hosts, roles=wish.roles)
    kept = [w for w in wanted if not w.is_service or wish.services or w.role in wish.roles]
    ended: list[Ended] = []
    for wave in reversed(refusals.waves(kept)):
        hosts = sorted({worker.host for worker in wave})
        ended += _each(hosts, partial(_stop_on, tools, wish, target, wave))
    return tuple(ended)


def stop_strays(tools: Tools, wish: Wish, name: str) -> Ended:
    """Stop what a deployment left on a host that plays no role in it any more."""
    host = wish.inventory.hosts[name]
    shared = wish.deployment.services
    images = (shared.etcd_image, shared.nats_image, shared.frontend_image)
    contained = wish.deployment.in_container or any(images)
    step = strays_step(wish.deployment.name, _folder(wish.deployment, host), contained=contained)
    seen = observe(tools, tools.fleet.remote(name), host, (step,))
    folder = wish.inventory.folder
    plan = Plan(name, tools.version, folder, "", (), (), plan_steps((step,), seen))
    return _carry_out(tools, wish, Target(wish.inventory, wish.deployment, ()), host, plan)


def _folder(deployment: Deployment, host: Host) -> str:
    """Return where a deployment's scripts lie on a host that plays no role in it."""
    default = deployment.knobs.get("serve_folder", KNOBS["serve_folder"].default)
    return f"{str(host.knobs.get('serve_folder', default)).rstrip('/')}/{deployment.name}"


def _stop_on(tools: Tools, wish: Wish, target: Target, wave: Iterable[Worker], name: str) -> Ended:
    host = wish.inventory.hosts[name]
    workers = [worker for worker in wave if worker.host == name]
    off = tuple(disable_step(worker) for worker in workers if worker.unit and wish.for_good)
    steps = (*off, *(stop_step(worker) for worker in workers))
    seen = observe(tools, tools.fleet.remote(name), host, steps)
    found = (
        refusals.foreign(worker, seen[step_id(worker)])
        for worker in workers
        if seen[step_id(worker)].found.endswith(" foreign")
    )
    planned = plan_steps(steps, seen)
    plan = Plan(name, tools.version, target.inventory.folder, "", tuple(found), (), planned)
    return _carry_out(tools, wish, target, host, plan)
