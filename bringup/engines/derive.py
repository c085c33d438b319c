"""Values that follow from where a worker stands: its rank, its address, the GPUs it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.host import Mode, Role, Scalar
from ..core.knobs import Decision
from ..core.reading import Known
from ..core.rules import World
from ..probes.gpu import Gpus
from ..rules.where import needs_network
from .engine import Settled
from .knobs import KNOBS, knobs_of


def gpus_of(world: World, role: Role) -> tuple[int, str] | None:
    """Return how many GPUs a worker takes on this host and the evidence, or None if unknown."""
    if role.gpus:
        return len(role.gpus), f"role {role.name} takes GPUs {','.join(map(str, role.gpus))}"
    seen = world.facts[Gpus]
    if isinstance(seen, Known):
        return len(seen.value.gpus), f"{world.host.name} has {len(seen.value.gpus)} GPUs"
    stated = world.host.gpu_count or (world.kind.gpu_count if world.kind else None)
    return None if stated is None else (stated, f"the inventory states {stated} GPUs")


def worker_of(role: Role, host: str) -> tuple[str, ...]:
    """Return the hosts of the worker that a host belongs to, rank 0 first."""
    return next((worker for worker in role.workers if host in worker), (host,))


def derived(
    settled: Settled,
    world: World,
    role: Role,
    *,
    port: int,
    peers: Mapping[str, str],
) -> dict[str, Decision]:
    """Return the settled knobs with what follows from place and facts added where unset.

    `port` is the engine's default; `peers` gives the advertised address of every host of the
    deployment.
    """
    result = dict(settled)
    known = knobs_of(world.deployment.engine) if world.deployment else KNOBS
    for knob, value, by, because in _derived(settled, world, role, port, peers):
        if knob not in known:
            continue
        result.setdefault(knob, Decision(knob, value, KNOBS[knob].default, by, because))
    return result


def _derived(
    settled: Settled, world: World, role: Role, port: int, peers: Mapping[str, str]
) -> Iterator[tuple[str, Scalar, str, str]]:
    host, worker = world.host, worker_of(role, world.host.name)
    yield "advertise_host", host.reached_at, "inventory", f"address of {host.name}"
    if len(worker) > 1:
        rank = worker.index(host.name)
        leader = peers.get(worker[0], "") or (host.reached_at if rank == 0 else "")
        place = f"{host.name} is rank {rank} of {' '.join(worker)}"
        yield "nodes", len(worker), "inventory", place
        yield "node_rank", rank, "inventory", place
        if leader:
            yield "leader_address", leader, "inventory", f"address of {worker[0]}, rank 0"
    yield "port", port, "default", "the engine's own default, written out"
    if role.mode is not Mode.AGGREGATED:
        if world.deployment is not None and needs_network(world.deployment, role):
            yield "side_channel_host", host.reached_at, "inventory", f"address of {host.name}"
        yield "side_channel_port", 5600, "default", "vLLM's own default, written out"
    yield from _tensor_parallel(settled, world, role, len(worker))


def _tensor_parallel(
    settled: Settled, world: World, role: Role, nodes: int
) -> Iterator[tuple[str, Scalar, str, str]]:
    """All GPUs that copies and stages leave over; silent when the count is not known."""
    counted = gpus_of(world, role)
    if counted is None:
        return
    gpus, evidence = counted
    shared = 1
    attention = settled.get("data_parallel_attention")
    for knob in ("data_parallel", "pipeline_parallel"):
        decision = settled.get(knob)
        inside = knob == "data_parallel" and attention is not None and attention.value is True
        if decision is not None and not inside:
            shared *= int(decision.value)
    if gpus * nodes % shared == 0:
        yield "tensor_parallel", gpus * nodes // shared, "facts", evidence
