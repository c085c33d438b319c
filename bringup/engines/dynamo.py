"""What every Dynamo worker shares: where etcd and NATS are, and its ports."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.host import Deployment, Scalar
from ..core.rules import World
from .build import Piece
from .common import TRANSFER, if_address
from .engine import Setting


def _healthy(_value: Scalar, _world: World) -> str:
    """Make /health of the system port answer 200 once the endpoint serves (503 otherwise)."""
    return '["generate"]'


SETTINGS = (
    Setting("dynamo_tool_call_parser", "--dyn-tool-call-parser"),
    Setting("dynamo_reasoning_parser", "--dyn-reasoning-parser"),
    Setting("request_plane", "--request-plane"),
    Setting("event_plane", "--event-plane"),
    Setting("advertise_host", variable="DYN_TCP_RPC_HOST", spell=if_address),
    Setting("rpc_port", variable="DYN_TCP_RPC_PORT"),
    Setting("system_port", variable="DYN_SYSTEM_PORT"),
    Setting("system_port", variable="DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", spell=_healthy),
    Setting("self_host_metadata", variable="DYN_SELF_HOST_METADATA"),
    *TRANSFER,
)


def services(deployment: Deployment) -> Iterator[Piece]:
    """Yield how a worker finds etcd and NATS, and under which namespace it registers.

    NATS only where the deployment names it: a worker that has NATS_SERVER fails without it, even
    on planes that do not use it.
    """
    shared, said = deployment.services, (f"said services of {deployment.name}",)
    if shared.etcd:
        yield Piece("ETCD_ENDPOINTS", ",".join(shared.etcd), said)
    if shared.nats:
        yield Piece("NATS_SERVER", shared.nats, said)
    yield Piece("DYN_NAMESPACE", shared.namespace, said)
