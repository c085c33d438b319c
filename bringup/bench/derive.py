"""One deployment, put to the GPUs of one host in another topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from ..core.errors import UsageError
from ..core.host import Deployment, Mode, Role, Scalar
from ..core.nearest import did_you_mean
from ..engines.topology_load import Topology

V = TypeVar("V")

SHORT: Mapping[Topology, str] = MappingProxyType(
    {Topology.COPIES: "dp", Topology.TENSOR: "tp", Topology.PAIR: "1p1d"}
)
"""The names that reports and command lines use."""

PLACED = frozenset({
    "tensor_parallel", "data_parallel", "pipeline_parallel", "decode_context_parallel", "nodes",
    "node_rank", "leader_address", "leader_port", "container_name", "kv_role", "service", "restart",
})  # fmt: skip
"""Knobs that say how GPUs are put to a model, or where a worker belongs: a topology sets them."""

OWN_PORTS = frozenset({"port", "side_channel_port"})
"""Knobs of a role that hold in its own topology alone."""


NAMES = {Mode.AGGREGATED: "serve", Mode.PREFILL: "prefill", Mode.DECODE: "decode"}
"""What the role of each mode is called."""


def named(name: str) -> Topology:
    """Return the topology of a short name; raises UsageError."""
    by_name = {short: topology for topology, short in SHORT.items()}
    if name not in by_name:
        raise UsageError(
            f"cannot measure topology {name!r}: there is none{did_you_mean(name, by_name)}",
            remedy=f"name one of {', '.join(by_name)}",
        )
    return by_name[name]


def chosen(names: Iterable[str]) -> tuple[Topology, ...]:
    """Return topologies by short names, in the order of `SHORT`; none named is all of them."""
    wanted = set(map(named, names)) or set(SHORT)
    return tuple(topology for topology in SHORT if topology in wanted)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where topologies are measured: a host, its GPUs by number, and how many one copy needs.

    `whole`: these are all GPUs of the host, so that nothing need name them.
    """

    host: str
    gpus: tuple[int, ...]
    need: int = 1
    whole: bool = True


def impossible(topology: Topology, ground: Ground) -> str:
    """Return why a topology cannot be on these GPUs, "" where it can."""
    count, need = len(ground.gpus), ground.need
    if topology is Topology.COPIES and count // need < 2:
        return f"{count} GPUs hold one copy: a copy takes {need}"
    if topology is Topology.TENSOR and count < max(2, need):
        return f"tensor parallel takes at least {max(2, need)} GPUs, {count} are there"
    if topology is Topology.PAIR and count // 2 < need:
        return f"prefill and decode take {need} GPUs each, {count} are there"
    return ""


def derived(deployment: Deployment, topology: Topology, ground: Ground) -> Deployment:
    """Return the deployment in a topology: own name, own containers, everything else the same.

    Settings of a role hold on where the topology has a role of its mode; else those on which all
    roles agree. Nothing restarts by itself, so that a start that fails is seen to fail.
    """
    make = {Topology.COPIES: _copies, Topology.TENSOR: _tensor, Topology.PAIR: _pair}[topology]
    knobs = {name: value for name, value in deployment.knobs.items() if name not in PLACED}
    return replace(
        deployment,
        name=name_of(deployment, topology),
        roles=make(deployment, ground),
        services=replace(deployment.services, frontend=""),
        bundle=None,
        knobs=knobs,
    )


def name_of(deployment: Deployment, topology: Topology) -> str:
    """Return the name of the deployment in a topology."""
    return f"{deployment.name}-bench-{SHORT[topology]}"


def _copies(deployment: Deployment, ground: Ground) -> tuple[Role, ...]:
    sizes = {"tensor_parallel": ground.need, "data_parallel": len(ground.gpus) // ground.need}
    return (_role(deployment, ground, Mode.AGGREGATED, ground.gpus, sizes),)


def _tensor(deployment: Deployment, ground: Ground) -> tuple[Role, ...]:
    sizes = {"tensor_parallel": len(ground.gpus)}
    return (_role(deployment, ground, Mode.AGGREGATED, ground.gpus, sizes),)


def _pair(deployment: Deployment, ground: Ground) -> tuple[Role, ...]:
    half = len(ground.gpus) // 2
    sizes = {"tensor_parallel": half}
    return (
        _role(deployment, ground, Mode.PREFILL, ground.gpus[:half], sizes),
        _role(deployment, ground, Mode.DECODE, ground.gpus[half : 2 * half], sizes),
    )


def _role(
    deployment: Deployment,
    ground: Ground,
    mode: Mode,
    gpus: tuple[int, ...],
    sizes: Mapping[str, Scalar],
) -> Role:
    own = next((role for role in deployment.roles if role.mode is mode), None)
    kept = _settings(own) if own else _shared(deployment)
    every = ground.whole and gpus == ground.gpus
    return Role(
        NAMES[mode], mode, ((ground.host,),), () if every else gpus,
        max_context=own.max_context if own else None,
        knobs={**kept, **sizes},
        flags=own.flags if own else _agreed([role.flags for role in deployment.roles]),
        env=own.env if own else _agreed([role.env for role in deployment.roles]),
    )  # fmt: skip


def _settings(role: Role) -> dict[str, Scalar]:
    return {name: value for name, value in role.knobs.items() if name not in PLACED}


def _shared(deployment: Deployment) -> dict[str, Scalar]:
    agreed = _agreed([_settings(role) for role in deployment.roles])
    return {name: value for name, value in agreed.items() if name not in OWN_PORTS}


def _agreed(every: list[Mapping[str, V]]) -> dict[str, V]:
    """Return what all say alike."""
    first, *others = every
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in others)
    }
