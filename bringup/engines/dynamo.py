"""What every Dynamo worker shares: where etcd and NATS are, its ports, its part in a pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..core.host import Deployment, Mode, Role, Scalar
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


SCRIPTS: Mapping[Mode, str] = MappingProxyType(
    {
        Mode.PREFILL: "serve_dynamo_prefill.sh",
        Mode.DECODE: "serve_dynamo_decode.sh",
        Mode.AGGREGATED: "serve_dynamo.sh",
    }
)
"""The script of each mode."""

MODES = tuple(SCRIPTS)


def mode(deployment: Deployment, role: Role) -> Iterator[Piece]:
    """Yield the part that a role plays, where it does not both prefill and decode."""
    if role.mode is not Mode.AGGREGATED:
        why = (f"role {role.name} of {deployment.name} is {role.mode.value}",)
        yield Piece("--disaggregation-mode", role.mode.value, why)


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
