"""From facts to a design: findings, settled knobs and specs, host by host. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from .core.facts import Facts
from .core.host import Deployment, Host, Inventory, Role, Scalar
from .core.kinds import kind_for
from .core.knobs import Decision
from .core.reading import value_of
from .core.rules import Finding, Joint, Status, World, judge
from .engines import ENGINES
from .engines import front as fronts
from .engines.pair import agree
from .engines.schema import Schema
from .engines.settle import settled
from .engines.spec import Spec, specify
from .probes.gpu import Gpus
from .rules import CHECKS, OPT_IN, advice, fallbacks, pairs
from .rules import deployment as across_hosts

RULES = (*fallbacks.ROWS, *advice.ROWS)
JOINT_RULES = (*across_hosts.ROWS, *pairs.ROWS)

TOLD_BY = {
    "JIT-01": ("vllm-without-nvcc", "sglang-without-nvcc", "kimi-k3-needs-nvcc"),
    "GPU-23": ("model-fits",),
    "ENG-01": ("moe-data-parallel",),
    "ENG-03": ("dynamo-sglang-versions",),
}
"""Checks of a bare host, and the rules that tell the same fact of what is to run there."""


@dataclass(frozen=True, slots=True)
class Part:
    """One role that a host plays: the spec that its settled knobs give, and what checks it."""

    world: World
    spec: Spec
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """All that was found and settled for one host."""

    host: Host
    findings: tuple[Finding, ...]
    parts: tuple[Part, ...]

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every decision of every part, by knob name; equal ones once."""
        found = [d for part in self.parts for _, d in sorted(part.spec.decisions.items())]
        return tuple(dict.fromkeys(found))


def world_of(
    inventory: Inventory,
    host: Host,
    facts: Facts,
    deployment: Deployment | None = None,
    role: Role | None = None,
) -> World:
    """Return what rules may look at for one host in one role."""
    gpus = value_of(facts[Gpus])
    kind = kind_for(inventory.kinds, gpus.gpus if gpus else (), host)
    return World(host, facts, kind, deployment, role)


def assess(
    inventory: Inventory,
    host: Host,
    facts: Facts,
    deployment: Deployment | None,
    *,
    deep: bool = False,
) -> tuple[Finding, ...]:
    """Return what the checks say of a host, in each role that it plays; each finding once.

    `deep` judges those checks too that load the hardware and run only when asked for.
    """
    rows = (*CHECKS, *OPT_IN) if deep else CHECKS
    roles = deployment.roles_of(host.name) if deployment else ()
    worlds = [world_of(inventory, host, facts, deployment, role) for role in roles]
    every = worlds or [world_of(inventory, host, facts)]
    return _checked((f for world in every for f in judge(rows, world, host=host.name)), ())


def assess_deployment(
    inventory: Inventory, deployment: Deployment, facts: Mapping[str, Facts]
) -> tuple[Finding, ...]:
    """Return what the rules across hosts say of a deployment."""
    return judge(JOINT_RULES, _joint(inventory, deployment, facts))


def design(
    inventory: Inventory,
    host: Host,
    deployment: Deployment | None,
    facts: Mapping[str, Facts],
    operator: Mapping[str, Scalar],
    *,
    asked: Iterable[Schema] = (),
) -> Design:
    """Return the design of one host in a deployment, given the facts of all that it is part of.

    `asked` are schemas that the deployment's image gave of itself; they win over shipped ones.
    Raises UsageError where two opinions on a knob cannot be settled.
    """
    own = facts[host.name]
    roles = deployment.roles_of(host.name) if deployment else ()
    if deployment is None or not roles:
        return Design(host, judge(CHECKS, world_of(inventory, host, own), host=host.name), ())
    joint, asked = _joint(inventory, deployment, facts), tuple(asked)
    across = judge(JOINT_RULES, joint, host=host.name)
    findings, parts = list(across), []
    for role in roles:
        world = world_of(inventory, host, own, deployment, role)
        ruled = judge(RULES, world, host=host.name)
        findings += [*judge(CHECKS, world, host=host.name), *ruled]
        parts.append(_part(joint, role, world, (*across, *ruled), operator, asked=asked))
    findings += _pair(joint, host, parts, across, operator)
    parts += _front(inventory, joint, host, operator)
    return Design(host, _checked(findings, parts), tuple(parts))


def _pair(
    joint: Joint,
    host: Host,
    parts: Iterable[Part],
    across: Iterable[Finding],
    operator: Mapping[str, Scalar],
) -> tuple[Finding, ...]:
    """Return how the rendered sides of a pair differ, unless what people wrote differs already."""
    if any(finding.id == "pair-agrees" for finding in across):
        return ()
    specs = [*(part.spec for part in parts), *_others(joint, host, operator)]
    return _at(host.name, agree(specs))


def _others(joint: Joint, host: Host, operator: Mapping[str, Scalar]) -> list[Spec]:
    """Return one worker's spec of each role that is not on this host, to compare with its own."""
    others = (role for role in joint.deployment.roles if host.name not in role.hosts)
    firsts = ((role, next((h for h in role.hosts if h in joint.worlds), "")) for role in others)
    return [_spec(joint, role, first, operator) for role, first in firsts if first]


def _front(
    inventory: Inventory, joint: Joint, host: Host, operator: Mapping[str, Scalar]
) -> list[Part]:
    """Return the router or frontend of the deployment where this host is its place."""
    deployment = joint.deployment
    if fronts.place_of(deployment, inventory.hosts) != host.name or host.name not in joint.worlds:
        return []
    placed = ((role, name) for role in deployment.roles for name in role.hosts)
    workers = [_spec(joint, role, h, operator) for role, h in placed if h in joint.worlds]
    world = replace(joint.worlds[host.name], role=fronts.role_of(deployment, host.name))
    decisions = settled(world, (), operator)
    spec = fronts.front(deployment, world, workers, decisions, peers=_peers(joint))
    return [Part(world, spec, _at(host.name, fronts.check(spec, deployment, workers)))]


def _spec(joint: Joint, role: Role, host: str, operator: Mapping[str, Scalar]) -> Spec:
    world = replace(joint.worlds[host], role=role)
    ruled = judge(RULES, world, host=host)
    return _part(joint, role, world, ruled, operator).spec


def _peers(joint: Joint) -> dict[str, str]:
    return {name: world.host.reached_at for name, world in joint.worlds.items()}


def _at(host: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, host=host) for finding in findings)


def _joint(inventory: Inventory, deployment: Deployment, facts: Mapping[str, Facts]) -> Joint:
    worlds = {
        name: world_of(inventory, inventory.hosts[name], facts[name], deployment, role)
        for role in deployment.roles
        for name in role.hosts
        if name in facts
    }
    return Joint(deployment, worlds)


def _part(
    joint: Joint,
    role: Role,
    world: World,
    ruled: Iterable[Finding],
    operator: Mapping[str, Scalar],
    *,
    asked: tuple[Schema, ...] = (),
) -> Part:
    deployment = joint.deployment
    engine = ENGINES[deployment.engine]
    decisions = settled(world, ruled, operator)
    spec = specify(engine, deployment, role, world, decisions, peers=_peers(joint))
    checked = engine.check(spec.command, engine.versions(deployment), asked)
    return Part(world, spec, _at(world.host.name, checked))


def _checked(findings: Iterable[Finding], parts: Iterable[Part]) -> tuple[Finding, ...]:
    """Return the findings with those on each rendered command line, each fact once."""
    everything = [*findings, *(f for part in parts for f in part.findings)]
    known = {f.id for f in everything if f.status is not Status.UNKNOWN}
    once = (f for f in everything if known.isdisjoint(TOLD_BY.get(f.id, ())))
    return tuple({(f.id, f.host, f.evidence): f for f in once}.values())
