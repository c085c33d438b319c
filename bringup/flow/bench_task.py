"""What is to be measured, and how it is told that a topology was not started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..bench.derive import Ground, derived
from ..bench.table import REFUSED, Row
from ..core.host import Deployment, Host, Inventory
from ..core.outcome import Ended
from ..core.rules import Finding, Level
from ..engines.topology_load import Topology
from .serve import Wish


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be measured where, and what the operator accepts. Times in seconds."""

    inventory: Inventory
    deployment: Deployment
    ground: Ground
    accept: tuple[str, ...] = ()
    bench_s: int = 3600
    every_s: float = 2.0

    @property
    def host(self) -> Host:
        return self.inventory.hosts[self.ground.host]

    @property
    def accepts_use(self) -> bool:
        """Whether the operator takes GPUs that somebody uses."""
        return "GPU-20" in self.accept

    def wish(self, topology: Topology, *, check: bool = False) -> Wish:
        """Return the wish to start the deployment in a topology."""
        made = derived(self.deployment, topology, self.ground)
        alone = replace(self.inventory, deployments={made.name: made})
        return Wish(alone, made, check=check, accept=self.accept)


def accepted(findings: tuple[Finding, ...], accept: tuple[str, ...]) -> Iterator[Finding]:
    """Yield findings; those that the operator accepts forbid nothing."""
    for one in findings:
        yield replace(one, level=Level.NOTE) if one.id in accept else one


def refused(topology: Topology, ended: Ended) -> Row:
    blocks = ended.plan.blocks if ended.plan else ()
    first = blocks[0]
    rest = "".join(f"; {one.id}: {one.title}" for one in blocks[1:])
    why = f"{first.title} ({first.id}){rest}"
    fix = f"{first.remedy}\nor, where you know better: --accept {first.id}"
    return Row(topology, REFUSED, why=why, cause=first.id, evidence="; ".join(first.evidence),
               fix=fix)  # fmt: skip
