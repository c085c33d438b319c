"""Which questions a host is asked: all the general ones, and those that a deployment adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..core.facts import Facts, Probe
from ..core.host import Deployment, Host
from ..core.reading import Known
from . import collect
from .bandwidth import bandwidth_probe
from .containers import inside_probe
from .hca_purpose import from_words, reclassified
from .infiniband import InfiniBand
from .inside import image_look
from .model import config_probe, model_probe, speed_probe
from .network import listeners_probe, names_probe
from .rdma import AGAIN
from .services import etcd_probe, nats_probe, place, reach_probe
from .storage import disks_probe
from .stored_image import image_probe

DISKS = ("/", "/var/log", "/tmp")  # noqa: S108 - asked about, nothing is written there


@dataclass(frozen=True, slots=True)
class Scope:
    """What a host is to serve, as far as it decides what to ask. Empty fields ask nothing.

    `ports` are those that we plan to take, `reach` are "HOST:PORT" of peers to try (opt-in), `deep`
    adds questions that load a disk or, while nobody uses them, the GPUs.
    """

    model: str = ""
    image: str = ""
    container: str = ""
    ports: tuple[int, ...] = ()
    disks: tuple[str, ...] = ()
    etcd: tuple[str, ...] = ()
    nats: str = ""
    names: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()
    deep: bool = False


def scope_of(
    deployment: Deployment,
    *,
    ports: Iterable[int] = (),
    container: str = "",
    reach: Iterable[str] = (),
    deep: bool = False,
) -> Scope:
    """Return what a deployment adds to the questions of its hosts."""
    services = deployment.services
    endpoints = (*services.etcd, services.nats, services.frontend)
    names = {place(endpoint, 0)[0] for endpoint in endpoints if endpoint} - {""}
    return Scope(
        model=deployment.model.path,
        image=deployment.image.reference if deployment.in_container else "",
        container=container if deployment.in_container else "",
        ports=tuple(sorted(set(ports))),
        disks=(deployment.model.path,),
        etcd=services.etcd,
        nats=services.nats,
        names=tuple(sorted(names)),
        reach=tuple(reach),
        deep=deep,
    )


def asked(scope: Scope) -> tuple[Probe[Any], ...]:
    """Return the questions that only make sense with a scope."""
    probes: list[Probe[Any]] = [
        listeners_probe(scope.ports),
        disks_probe(tuple(dict.fromkeys((*DISKS, *scope.disks)))),
    ]
    if scope.model:
        probes += [model_probe(scope.model), config_probe(scope.model)]
        probes += [speed_probe(scope.model)] if scope.deep else []
    probes += [bandwidth_probe()] if scope.deep else []
    probes += [image_probe(scope.image)] if scope.image else []
    if scope.container:
        probes.append(inside_probe(scope.container))
    elif scope.image and scope.deep:
        probes.append(image_look(scope.image))
    probes += [etcd_probe(scope.etcd)] if scope.etcd else []
    probes += [nats_probe(scope.nats)] if scope.nats else []
    probes += [names_probe(scope.names)] if scope.names else []
    probes += [reach_probe(scope.reach)] if scope.reach else []
    return tuple(probes)


def questions(scope: Scope | None = None) -> tuple[Probe[Any], ...]:
    """Return every question for one trip; a scoped one stands in for the general one of its name.

    The second sample of the link counters comes last.
    """
    general = {probe.name: probe for probe in collect()}
    scoped = {probe.name: probe for probe in asked(scope or Scope())}
    named = {**general, **scoped}
    named.pop(AGAIN.name, None)
    return (*named.values(), AGAIN)


def every() -> tuple[Probe[Any], ...]:
    """Return every question that any scope may ask, for reading answers back. Never sent."""
    whole = Scope(
        model="/", image="-", container="-", etcd=("-",), nats="-", names=("-",), reach=("-",),
        deep=True,
    )  # fmt: skip
    return questions(whole)


def corrected(facts: Facts, host: Host) -> Facts:
    """Return facts with the inventory's word on RDMA devices (`compute_nics`, `storage_nics`)."""
    reading = facts[InfiniBand]
    words = [str(host.knobs.get(name, "")) for name in ("compute_nics", "storage_nics")]
    if not isinstance(reading, Known) or not any(words):
        return facts
    told = reclassified(reading.value, from_words(*words))
    return facts.replace(InfiniBand, replace(reading, value=told))
