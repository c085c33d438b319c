"""Wait until etcd and NATS that were just started answer: a worker of Dynamo 1.3 ends without."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from ..core.errors import ToolError
from ..core.reading import Known
from ..edge import services
from .look import Looker
from .targets import Target
from .types import Tools

SERVICE_S = 60.0
"""Longest wait for a service that was just started."""


def await_services(tools: Tools, target: Target, roles: Collection[str]) -> None:
    """Return when the services of these roles answer on their host. Raises ToolError."""
    shared = target.deployment.services
    opener = Looker(target, tools.fleet.remote, tools.nonce).dialer(shared.host)

    def etcd_answers() -> bool:
        reading = services.etcd(opener, shared.etcd)
        return isinstance(reading, Known) and bool(reading.value.healthy)

    def nats_answers() -> bool:
        return isinstance(services.nats(opener, shared.nats), Known)

    if "etcd" in roles:
        _await(target, "etcd", shared.etcd[0], etcd_answers)
    if "nats" in roles:
        _await(target, "nats", shared.nats, nats_answers)


def _await(target: Target, role: str, place: str, answers: Callable[[], bool]) -> None:
    ends = time.monotonic() + SERVICE_S
    while not answers():
        if time.monotonic() > ends:
            raise ToolError(
                f"cannot go on: {role} at {place} does not answer {SERVICE_S:.0f} s after its "
                "start",
                host=target.deployment.services.host,
                remedy=f"bringup serve.logs --deployment {target.deployment.name} --role {role}",
            )
        time.sleep(0.5)
