"""Which TCP ports a worker will take on a host, and which of its peers' it will call."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.facts import Facts
from ..core.host import Deployment, Host, Mode, Role
from ..core.rules import World
from ..engines.collect import engines
from ..engines.knobs import KNOBS, knobs_of
from . import where


def planned(world: World) -> dict[str, int]:
    """Return the ports that this host's worker listens on, by knob; {} without a role."""
    deployment, role = world.deployment, world.role
    if deployment is None or role is None or deployment.engine not in engines():
        return {}
    wanted = {knob: _port(world, knob) for knob in _listening(deployment, role)}
    return {knob: port for knob, port in wanted.items() if port}


def _listening(deployment: Deployment, role: Role) -> tuple[str, ...]:
    is_pair = role.mode is not Mode.AGGREGATED
    knobs = ["port"] if "port" in knobs_of(deployment.engine) else []
    if deployment.engine in where.DYNAMO:
        knobs += ["system_port", "rpc_port"]
    if is_pair and role.mode is Mode.PREFILL and "sglang" in deployment.engine:
        knobs.append("bootstrap_port")
    if is_pair and "vllm" in deployment.engine:
        knobs.append("side_channel_port")
    return tuple(knobs)


def _port(world: World, knob: str) -> int:
    told = where.said(world, knob)
    if isinstance(told, int) and not isinstance(told, bool):
        return told
    default = KNOBS[knob].default
    if isinstance(default, int):
        return default
    engine = world.deployment.engine if world.deployment else ""
    return engines()[engine].port or 0 if knob == "port" else 0


PEER_KNOBS = ("bootstrap_port", "side_channel_port", "rpc_port")
"""Ports that the other hosts of a deployment call."""


def peers(deployment: Deployment, host: str, hosts: Mapping[str, Host]) -> tuple[str, ...]:
    """Return "HOST:PORT" of every port that this host's worker will call on the other hosts."""
    found = []
    for role in deployment.roles:
        for name in role.hosts:
            other = hosts.get(name)
            if other is None or name == host:
                continue
            ports = planned(World(other, Facts(), None, deployment, role))
            address = other.reached_at
            found += [f"{address}:{port}" for knob, port in ports.items() if knob in PEER_KNOBS]
    return tuple(dict.fromkeys(found))
