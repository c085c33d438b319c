"""What people set by hand that works against the host, the engine or the rest of the deployment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.host import Deployment, Role
from ..core.reading import Known
from ..core.rules import Row, Seen, World, failed, warned
from ..engines.collect import engines
from ..engines.knobs import KNOBS
from ..probes.infiniband import InfiniBand
from .where import DYNAMO, for_worker, needs_network, said

RDMA = "docs/engines.md#rdma-devices"
SERVICES = "docs/engines.md#etcd-nats-and-the-frontend"


@for_worker
def _planes(world: World, deployment: Deployment, role: Role) -> Seen | None:
    """Name the planes that go over NATS where nobody is told of a server."""
    if deployment.engine not in DYNAMO or deployment.services.nats or "NATS_SERVER" in role.env:
        return None
    told = {knob: role.env.get(name, said(world, knob)) for knob, name in PLANES.items()}
    return (
        failed(*(f"{knob} = nats, services.nats is empty" for knob in nats))
        if (nats := [knob for knob, value in told.items() if value == "nats"])
        else None
    )


PLANES = {"request_plane": "DYN_REQUEST_PLANE", "event_plane": "DYN_EVENT_PLANE"}


@for_worker
def _devices(world: World, deployment: Deployment, role: Role) -> Seen | None:
    """Name devices that are listed by hand and carry no traffic on this host, or are not there."""
    seen = world.facts[InfiniBand]
    if not isinstance(seen, Known) or not needs_network(deployment, role):
        return None
    return failed(*bad) if (bad := list(_unfit(world, role, seen.value))) else None


def _unfit(world: World, role: Role, rdma: InfiniBand) -> Iterator[str]:
    compute = {device.name: device for device in rdma.compute}
    bridges = {device.name for device in rdma.bridges}
    there = {device.name for device in rdma.devices}
    for knob, name in LISTS.items():
        for device in _named(str(role.env.get(name, said(world, knob) or ""))):
            if device in bridges:
                yield f"{knob} names {device}, a switch's management device"
            elif device not in there and rdma.whole:
                yield f"{knob} names {device}, which this host lacks"
            elif device in compute and not compute[device].is_active:
                yield f"{knob} names {device}, which is {compute[device].state or 'not active'}"


def _named(text: str) -> list[str]:
    """Return the devices that a list takes; a list of what to leave out takes none."""
    return [] if text.startswith("^") else re.findall(r"\bmlx5_\w+", text)


LISTS = {"ucx_net_devices": "UCX_NET_DEVICES", "nccl_ib_hca": "NCCL_IB_HCA"}


@for_worker
def _without_rdma(world: World, deployment: Deployment, role: Role) -> Seen | None:
    if not needs_network(deployment, role):
        return None
    tls = str(role.env.get("UCX_TLS", said(world, "ucx_tls") or ""))
    found = [f"ucx_tls = {tls} has no RDMA transport"] if _is_slow(tls) else []
    if role.env.get("NCCL_IB_DISABLE", "0") not in ("", "0"):
        found.append(f"role {role.name} sets NCCL_IB_DISABLE")
    if not found:
        return None
    return warned(*found, "accept_tcp: true") if deployment.accept_tcp else failed(*found)


def _is_slow(tls: str) -> bool:
    """Return whether a list of UCX transports leaves all of RDMA out."""
    words = {word.strip() for word in tls.split(",")}
    fast = any(re.match(r"(all|ib|rc|dc|ud|rdma)\b|(rc|dc|ud)_", word) for word in words)
    return bool(tls) and not tls.startswith("^") and not fast


@for_worker
def _gpus(_world: World, _deployment: Deployment, role: Role) -> Seen | None:
    found = [f"role {role.name} sets {n}={role.env[n]}" for n in GPU_LISTS if n in role.env]
    return warned(*found) if found else None


GPU_LISTS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


@for_worker
def _foreign(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    """Name flags that another engine spells, with the knob that this one spells its own way."""
    own = engines().get(deployment.engine)
    if own is None:
        return None
    mine = {setting.flag for setting in own.settings}
    theirs = {
        setting.flag: (setting.knob, engine.name)
        for engine in engines().values()
        for setting in engine.settings
        if setting.flag and deployment.engine in (KNOBS[setting.knob].engines or engines())
    }
    given = [f"--{name.lstrip('-')}" for name in role.flags]
    found = [(flag, *theirs[flag]) for flag in given if flag in theirs and flag not in mine]
    return (
        warned(*(f"{f} is a flag of {e}; here it is knob {k}" for f, k, e in found))
        if (found)
        else None
    )


ROWS: tuple[Row[World], ...] = (
    Row("planes-need-nats", "Planes over NATS have a server", _planes,
        "a worker whose plane is nats looks for it at localhost and ends where nobody answers",
        SERVICES, "set services.nats in the deployment, or take the planes tcp and zmq"),
    Row("devices-by-hand", "RDMA devices named by hand carry traffic here", _devices,
        "a switch's management device is ACTIVE and carries nothing; a device that is missing or "
        "down ends UCX and NCCL, or hangs them", RDMA,
        "take the list out: it is computed on each host"),
    Row("rdma-switched-off", "Nothing by hand keeps KV and NCCL off RDMA", _without_rdma,
        "KV over TCP took 1,800 ms where RDMA took 0.16 ms (dynamo#1314)", RDMA,
        "take it out of the deployment, or say accept_tcp: true"),
    Row("gpus-by-hand", "GPUs are chosen by the role's list", _gpus,
        "rules count the GPUs of the role's list; a variable that says another number is not seen "
        "by them, and counts anew inside a container", "docs/inventory.md#deployments",
        "write gpus: [0, 1] under the role instead"),
    Row("flag-of-another-engine", "Flags are those of this engine", _foreign,
        "engines spell the same wish differently", "docs/engines.md#what-each-version-accepts",
        "write the knob instead: it is spelt for any engine"),
)  # fmt: skip
