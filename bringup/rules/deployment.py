"""Rules across the hosts of a deployment: what both roles must share, and must not."""

from __future__ import annotations

from ..core.host import Mode
from ..core.reading import Absent, Unknown, evidence_of
from ..core.rules import Joint, Level, Row, Seen, Status, failed, passed, unknown, warned
from ..probes.infiniband import InfiniBand
from .where import crosses_hosts, sides


def _complete(joint: Joint) -> Seen | None:
    modes = {role.mode for role in joint.deployment.roles}
    if modes in ({Mode.PREFILL}, {Mode.DECODE}):
        return failed(f"{joint.deployment.name} has {modes.pop().value} workers only")
    return None


def _rdma(joint: Joint) -> Seen | None:
    """Every host of both sides has an active compute device, or an operator accepts TCP."""
    deployment = joint.deployment
    if not crosses_hosts(deployment):
        return None
    hosts = dict.fromkeys((*sides(deployment, Mode.PREFILL), *sides(deployment, Mode.DECODE)))
    without, dark = [], []
    for name in hosts:
        world = joint.worlds.get(name)
        seen = world.facts[InfiniBand] if world else Unknown("host was not probed")
        if isinstance(seen, Unknown):
            dark.append(f"{name}: {seen.why}")
        elif isinstance(seen, Absent):
            without.append(f"{name}: no RDMA device ({evidence_of(seen)})")
        elif not any(device.is_active for device in seen.value.compute):
            without.append(f"{name}: no active compute device among {len(seen.value.devices)}")
    if deployment.accept_tcp and (without or dark):
        return warned(*without, *dark, "accept_tcp: true")
    if without:
        return failed(*without)
    return unknown(*dark) if dark else passed(f"active on {' '.join(hosts)}")


ROWS: tuple[Row[Joint], ...] = (
    Row(
        "pair-complete", "Prefill and decode are both there", _complete,
        "a prefill worker without a decode worker serves nothing, and the reverse",
        "docs/engines.md#pairs", "add a role of the other mode, or make this one aggregated",
    ),
    Row(
        "rdma-between-pair", "RDMA between prefill and decode", _rdma,
        "KV over TCP took 1,800 ms where RDMA took 0.16 ms (dynamo#1314)",
        "docs/engines.md#rdma-devices",
        "mend the fabric, serve aggregated, or say accept_tcp: true in the deployment",
        {Status.UNKNOWN: Level.BLOCK},
    ),
)  # fmt: skip
