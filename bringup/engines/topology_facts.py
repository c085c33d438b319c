"""Hardware and model for topology advice, from facts and a deployment."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import UsageError
from ..core.facts import Facts
from ..core.host import Deployment
from ..core.reading import Absent, Known
from ..probes.gpu import Gpus
from ..probes.infiniband import InfiniBand
from .topology import Hardware, Link, Subject


def hardware_of(facts: Iterable[Facts]) -> Hardware:
    """Return what hosts have together, by the smallest of them. Unknown GPUs count as none.

    Hosts are joined by RDMA where all have an active compute device, by TCP where one surely has
    none, and by nobody-knows otherwise.
    """
    found = tuple(facts)
    cards = [seen.value.gpus for one in found if isinstance(seen := one[Gpus], Known)]
    memory = [gpu.memory_mib for gpus in cards for gpu in gpus if gpu.memory_mib]
    count = min((len(gpus) for gpus in cards), default=0) if len(cards) == len(found) else 0
    return Hardware(len(found), count, min(memory, default=0) / 1024, _joined(found))


def _joined(facts: tuple[Facts, ...]) -> Link:
    seen = [one[InfiniBand] for one in facts]
    if any(isinstance(one, Absent) for one in seen):
        return Link.TCP
    known = [one.value for one in seen if isinstance(one, Known)]
    if len(known) < len(seen):
        return Link.UNKNOWN
    return Link.RDMA if all(any(d.is_active for d in ib.compute) for ib in known) else Link.TCP


def subject_of(deployment: Deployment) -> Subject:
    """Return the model of a deployment; raises UsageError where its size is not stated."""
    model = deployment.model
    if model.weights_gib is None:
        raise UsageError(
            f"cannot argue about {deployment.name}: the size of its model is not stated",
            remedy="set model.weights_gib in the deployment",
        )
    return Subject(
        model.weights_gib, model.mixture_of_experts, deployment.engine,
        deployment.image.engine_version,
    )  # fmt: skip
