"""Worlds for rows of checks: a host with a few facts, alone or serving a pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup.core.facts import Facts
from bringup.core.host import Deployment, Host, Image, Kind, Login, Mode, Model, Role, Services
from bringup.core.reading import Known, Reading
from bringup.core.rules import Finding, World, judge
from bringup.probes.gpu import Gpu, Gpus
from bringup.probes.hca import Hca, Purpose
from bringup.rules import CHECKS

B300 = Kind(
    "b300", ("NVIDIA B300",), form="hgx", nvlsm=True, fabric_manager=True, rate_gb_s_per_gpu=800.0
)
PREFILL = Role("prefill", Mode.PREFILL, (("b300-04",),))
DECODE = Role("decode", Mode.DECODE, (("b300-07",),))
PAIR = Deployment(
    "k3",
    "dynamo.sglang",
    Model("kimi-k3", "/raid/models/K3", architecture="kimi_k3"),
    Image("k3", "k3:1", digest="sha256:" + "a" * 64, dynamo_version="1.3.0.post1"),
    (PREFILL, DECODE),
    Services(("http://a:2379", "http://b:2379", "http://c:2379"), "nats://n:4222"),
)
EIGHT = Gpus("580.95.05", "13.0", tuple(Gpu(i, "NVIDIA B300 SXM6 AC") for i in range(8)))


def facts(*values: object) -> Facts:
    """Return facts by type: plain values count as known."""
    return Facts({type(value): Known(value, "seen") for value in values})


def world(
    *values: object,
    absent: Mapping[Any, Reading[Any]] | None = None,  # Any: facts and readings of any type
    pair: bool = False,
    kind: Kind | None = None,
    deployment: Deployment = PAIR,
) -> World:
    """Return a host's world: alone, or as the prefill side of a pair."""
    told = facts(*values)
    for fact, reading in (absent or {}).items():
        told = told.replace(fact, reading)
    host = Host("b300-04", Login("192.0.2.4"))
    role = deployment.role_of("b300-04") if pair else None
    return World(host, told, kind, deployment if pair else None, role)


def finding(identity: str, of: World) -> Finding:
    """Return what one check says of a world."""
    (one,) = judge([row for row in CHECKS if row.id == identity], of)
    return one


def nic(name: str, state: str = "ACTIVE", **more: Any) -> Hca:
    """Return a compute device."""
    values: dict[str, Any] = {"physical": "LinkUp", "rate_gb_s": 800.0, **more}
    return Hca(name, Purpose.COMPUTE, state=state, **values)
