"""How workers reach each other: RDMA devices, NIXL, ports, addresses. Computed on each host."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

from ..core.host import Deployment, Role, Scalar
from ..core.reading import Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, unknown, warned
from ..core.version import at_least
from ..engines import front
from ..engines.knobs import knobs_of
from ..probes.gpu import Gpus
from ..probes.infiniband import Hca, InfiniBand
from .where import (
    DYNAMO,
    SGLANG,
    VLLM,
    crosses_hosts,
    for_worker,
    is_pair,
    needs_network,
    number,
    said,
    shares_host,
)

RDMA = "docs/engines.md#rdma-devices"
ONE_HOST = "docs/engines.md#prefill-and-decode-on-one-host"
NIXL = "docs/engines.md#nixl"


def nics(rdma: InfiniBand, gpus: tuple[int, ...]) -> tuple[Hca, ...]:
    """Return the active compute devices of these GPUs, in GPU order, each once.

    Without known distances: all active compute devices. Switch bridges are never among them, nor
    are adapters that UCX cannot use.
    """
    usable = (device for device in rdma.compute if device.is_active and not device.is_elastic)
    active = {device.name: device for device in usable}
    near = [name for gpu in gpus for name in rdma.rails.get(gpu) or _nearest(rdma, gpu)]
    chosen = [active[name] for name in dict.fromkeys(near) if name in active]
    return tuple(chosen) or tuple(active.values())


def _nearest(rdma: InfiniBand, gpu: int) -> tuple[str, ...]:
    return (rdma.nearest[gpu],) if gpu in rdma.nearest else ()


@for_worker
def _devices(world: World, deployment: Deployment, role: Role) -> Seen | None:
    if not needs_network(deployment, role) or deployment.accept_tcp:
        return None
    seen = world.facts[InfiniBand]
    if isinstance(seen, Unknown):
        return unknown(seen.why)
    if not isinstance(seen, Known):
        return None  # the pair's own rule speaks of it, once
    chosen = nics(seen.value, _gpus(world, role))
    if not chosen:
        return None
    names = [device.name for device in chosen]
    bridges = [device.name for device in seen.value.bridges]
    down = [device.name for device in seen.value.compute if not device.is_active]
    evidence = [f"active compute devices by GPU: {' '.join(names)}"]
    evidence += [f"switch bridges left out: {' '.join(bridges)}"] if bridges else []
    evidence += [f"not active, left out: {' '.join(down)}"] if down else []
    choices: dict[str, Scalar] = {
        "ucx_net_devices": ",".join(f"{device.name}:{device.port}" for device in chosen),
        "nccl_ib_hca": "=" + ",".join(names),
    }
    return Seen(Status.WARN if down else Status.PASS, tuple(evidence), choices)


def _gpus(world: World, role: Role) -> tuple[int, ...]:
    if role.gpus:
        return role.gpus
    seen = world.facts[Gpus]
    return tuple(gpu.index for gpu in seen.value.gpus) if isinstance(seen, Known) else ()


@for_worker
def _transfer(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    if not is_pair(role):
        return None
    what = f"role {role.name} is one side of a pair"
    return Seen(Status.PASS, (what, f"engine {deployment.engine}"), {"transfer_backend": "nixl"})


@for_worker
def _listens(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    if deployment.engine != SGLANG or not is_pair(role):
        return None
    return Seen(Status.PASS, (f"role {role.name}",), {"listen_address": "0.0.0.0"})  # noqa: S104


@for_worker
def _layout(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    if deployment.engine not in VLLM or not is_pair(role) or not deployment.model.hybrid:
        return None
    version = deployment.image.engine_version
    if at_least(version, "0.20.0") is False:
        return failed(
            f"vLLM {version} has no VLLM_SSM_CONV_STATE_LAYOUT (first in 0.20.0)",
            remedy="use vLLM 0.20.0 or later, or serve without disaggregation",
        )
    model = deployment.model.served_name
    return Seen(Status.PASS, (f"{model} has convolution state",), {"conv_state_layout": "DS"})


@for_worker
def _same_host(world: World, deployment: Deployment, role: Role) -> Seen | None:
    """Give each worker of this host its own ports, apart by more than its copies need."""
    roles = deployment.roles_of(world.host.name)
    beside = front.ROUTER if _holds_router(world, deployment) else ""
    if len(roles) < 2 and not beside:
        return None
    over_nvlink = shares_host(deployment, role, world.host.name) and not crosses_hosts(deployment)
    if over_nvlink and (pinned := _pinned(world)):
        return failed(*pinned, remedy="remove ucx_tls and ucx_net_devices for this host")
    place = [other.name for other in roles].index(role.name)
    copies = max(8, *(number(replace(world, role=r), "data_parallel", 1) for r in roles))
    choices: dict[str, Scalar] = {"port": 8100 + 100 * place, "system_port": 8081 + place}
    if deployment.engine in VLLM:
        choices["side_channel_port"] = 5600 + copies * place
    if deployment.in_container and over_nvlink:
        choices["share_pid"] = True
    held = [*(other.name for other in roles), *([beside] if beside else [])]
    known = knobs_of(deployment.engine)
    choices = {knob: value for knob, value in choices.items() if knob in known}
    held_by = f"{world.host.name} holds {', '.join(held[:-1])} and {held[-1]}"
    return Seen(Status.PASS, (held_by,), choices)


def _holds_router(world: World, deployment: Deployment) -> bool:
    """Return whether this host may be the router's place: its port is the worker's default."""
    if front.kind_of(deployment) != front.ROUTER:
        return False
    return bool(front.place_of(deployment, {world.host.name: world.host}))


def _pinned(world: World) -> list[str]:
    """Return values of a two-host pair that would keep UCX off NVLink."""
    by_hand = world.role.env if world.role else {}
    tls = by_hand.get("UCX_TLS", said(world, "ucx_tls"))
    devices = by_hand.get("UCX_NET_DEVICES", said(world, "ucx_net_devices"))
    found = []
    if isinstance(tls, str) and not ({"cuda_ipc", "cuda", "all"} & set(tls.split(","))):
        found.append(f"ucx_tls = {tls} leaves out cuda_ipc, the way over NVLink")
    if devices is not None:
        found.append(f"ucx_net_devices = {devices} is meant for KV between hosts")
    return found


@for_worker
def _address(world: World, deployment: Deployment, role: Role) -> Seen | None:
    host = world.host
    told = str(said(world, "advertise_host") or host.reached_at)
    alone = len({h for r in deployment.roles for h in r.hosts}) == 1
    try:
        address = ipaddress.ip_address(told)
    except ValueError:
        if not needs_network(deployment, role) and deployment.engine not in DYNAMO:
            return None
        return warned(f"{host.name} is known as {told}, not by an address")
    if (address.is_loopback or address.is_unspecified) and not alone:
        return failed(f"{host.name} would be announced as {told}")
    return passed(f"announced as {told}")


ROWS: tuple[Row[World], ...] = (
    Row(
        id="rdma-device-list",
        title="RDMA devices for KV and NCCL",
        look=_devices,
        reason="UCX left alone may take a wrong, inactive or management device and hang or fall "
        "back to TCP; NCCL's names match by prefix unless they start with '='",
        remedy="find out why the RDMA devices cannot be read, or set accept_tcp: true",
        source=RDMA,
        levels={Status.UNKNOWN: Level.BLOCK},
    ),
    Row(
        id="nixl-transfer",
        title="KV goes over NIXL",
        look=_transfer,
        reason="SGLang takes mooncake unless nixl is asked for; both roles must name the same",
        source=NIXL,
    ),
    Row(
        id="bootstrap-listens",
        title="The bootstrap port listens beyond loopback",
        look=_listens,
        reason="SGLang's bootstrap server listens where --host says, by default 127.0.0.1, where "
        "a decode worker elsewhere cannot reach it",
        source="https://github.com/ai-dynamo/dynamo/blob/main/examples/backends/sglang/launch/disagg.sh",
    ),
    Row(
        id="hybrid-nixl-layout",
        title="Convolution state layout for NIXL",
        look=_layout,
        reason="the NIXL connector asserts layout DS for models with Mamba-like state",
        source=NIXL,
    ),
    Row(
        id="pair-on-one-host",
        title="Several workers on one host",
        look=_same_host,
        reason="KV goes over NVLink, which needs cuda_ipc: nothing may pin UCX to RDMA; ports and "
        "side channels must be apart by at least the number of copies",
        source=ONE_HOST,
    ),
    Row(
        id="announced-address",
        title="The address that others reach this host at",
        look=_address,
        reason="Dynamo announces this address to the frontend and to the other role; a loopback "
        "address is reachable by nobody, a name must resolve everywhere",
        remedy="set advertise: ADDRESS for this host in inventory/hosts.yml",
        source="docs/engines.md#addresses-and-ports",
    ),
)
