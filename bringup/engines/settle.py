"""Gather everybody's word on a worker's knobs and settle them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.errors import UsageError
from ..core.host import Scalar
from ..core.knobs import Decision, Opinion, Rank, settle
from ..core.nearest import did_you_mean
from ..core.rules import Finding, World
from .knobs import KNOBS, knobs_of


def opinions(
    world: World, findings: Iterable[Finding], operator: Mapping[str, Scalar] | None = None
) -> Iterator[Opinion]:
    """Yield all opinions on the knobs of the world's worker: kind, rules, inventory, operator."""
    for finding in findings:
        for knob, value in finding.decide.items():
            because = "; ".join(finding.evidence)
            yield Opinion(knob, value, Rank.RULE, f"rule {finding.id}", because)
    for rank, by, said in _written(world):
        for knob, value in said.items():
            yield Opinion(knob, value, rank, by)
    for knob, value in (operator or {}).items():
        yield Opinion(knob, value, Rank.OPERATOR, "the operator")


def _written(world: World) -> Iterator[tuple[Rank, str, Mapping[str, Scalar]]]:
    host, kind, deployment, role = world.host, world.kind, world.deployment, world.role
    if kind is not None:
        yield Rank.KIND, f"kind {kind.name}", kind.knobs
    if deployment is not None:
        yield Rank.DEPLOYMENT, f"deployment {deployment.name}", deployment.knobs
    if role is not None:
        yield Rank.ROLE, f"role {role.name}", role.knobs
    yield Rank.HOST, f"host {host.name}", host.knobs


def settled(
    world: World, findings: Iterable[Finding], operator: Mapping[str, Scalar] | None = None
) -> dict[str, Decision]:
    """Return the settled knobs of the world's worker.

    Kinds and hosts serve many engines: their words on knobs that this engine lacks are dropped.
    Raises UsageError where a role, its deployment or an operator names a knob it lacks.
    """
    engine = world.deployment.engine if world.deployment else ""
    known = knobs_of(engine)
    lenient = (Rank.KIND, Rank.HOST, Rank.RULE)
    kept = []
    for opinion in opinions(world, findings, operator):
        if opinion.knob in known:
            kept.append(opinion)
        elif opinion.rank not in lenient:
            raise _lacking(opinion, engine, known)
    return settle(known, kept)


def _lacking(opinion: Opinion, engine: str, known: Iterable[str]) -> UsageError:
    """Tell a knob of other engines from a word that is no knob."""
    knob = KNOBS.get(opinion.knob)
    whose = f"; it is for {' and '.join(knob.engines)}" if knob is not None else ""
    near = did_you_mean(opinion.knob, known)
    said = f"cannot set {opinion.knob!r}: no such knob of {engine}{whose}{near}"
    return UsageError(f"{said} (said {opinion.by})", remedy="bringup explain KNOB tells of each")
