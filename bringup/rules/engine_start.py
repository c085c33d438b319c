"""How long a start may take: budgets that hold for the slowest honest start, and why."""

from __future__ import annotations

from ..core.host import Deployment, Role
from ..core.rules import Row, Seen, Status, World
from .where import VLLM, for_worker, is_blackwell, is_kimi_k3, number

SOURCE = "docs/engines.md#how-long-a-start-takes"

# Proposed figures, without a public source: a slow but usual read rate, and compile time.
READ_GIB_S = 1.0
COMPILE_S = 900


@for_worker
def _twice(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    copies = number(_world, "data_parallel", 1)
    if deployment.engine not in VLLM or copies < 2:
        return None
    return Seen(Status.PASS, (f"data_parallel = {copies}",), {"ready_timeout_s": 1800})


@for_worker
def _compiles(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if deployment.engine not in VLLM or not is_blackwell(world):
        return None
    return Seen(Status.PASS, ("Blackwell GPUs",), {"ready_timeout_s": 1800})


@for_worker
def _large(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    size = deployment.model.weights_gib or 0
    if not is_kimi_k3(deployment) and size < 1000:
        return None
    what = f"model {deployment.model.served_name}: {size:.0f} GiB of weights"
    return Seen(Status.PASS, (what,), {"ready_timeout_s": 3600})


@for_worker
def _reads(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    size = deployment.model.weights_gib
    if size is None:
        return None
    budget = round(size / READ_GIB_S + COMPILE_S)
    if budget <= 600:
        return None
    what = f"{size:.0f} GiB at {READ_GIB_S:.0f} GiB/s, and {COMPILE_S} s to compile"
    return Seen(Status.PASS, (what,), {"ready_timeout_s": budget})


ROWS: tuple[Row[World], ...] = (
    Row(
        id="data-parallel-start-compiles-twice",
        title="Copies compile at the same time",
        look=_twice,
        reason="two engine cores compiled at once and ran past the 600 s default; "
        "1,800 s was enough in the 2×B200 report",
        source=SOURCE,
        follow_up="the second start is shorter when cache_folder keeps the compiled kernels",
    ),
    Row(
        id="blackwell-first-start",
        title="The first start compiles",
        look=_compiles,
        reason="the first start took some 800 s on a B200 host: torch.compile and graph capture",
        source=SOURCE,
    ),
    Row(
        id="large-model-slow-start",
        title="A very large model starts slowly",
        look=_large,
        reason="loading 2.8T parameters, capturing graphs and preparing kernels took about "
        "25 minutes; 3,600 s is public practice for such models",
        source=SOURCE,
    ),
    Row(
        id="weights-take-time",
        title="Reading the weights takes time",
        look=_reads,
        reason="the budget must cover reading all weights at a slow but usual rate",
        source=SOURCE,
    ),
)
