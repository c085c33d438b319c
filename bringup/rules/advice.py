"""Advice: nothing is chosen and nothing stops, but an operator would want to know."""

from __future__ import annotations

from ..core.host import Deployment, Role
from ..core.rules import Level, Row, Seen, Status, World, warned
from .engine_model import gpus_used
from .where import VLLM, for_worker, is_kimi_k3, is_pair, shares_host


@for_worker
def _replicas(world: World, deployment: Deployment, role: Role) -> Seen | None:
    gpus = gpus_used(world, role)
    weights = deployment.model.weights_gib
    if not gpus or weights is None or not shares_host(deployment, role, world.host.name):
        return None
    one = min((gpu.memory_mib or 0) for gpu in gpus) / 1024 * 0.9
    if weights > one:
        return None
    return warned(f"{weights:.0f} GiB of weights fit one GPU, and the pair shares one host")


@for_worker
def _k3_vllm(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    if not is_kimi_k3(deployment) or deployment.engine not in VLLM or not is_pair(role):
        return None
    return warned("Kimi K3, vLLM, prefill and decode apart", level=Level.WARN)


NOTE = {Status.WARN: Level.NOTE}

ROWS: tuple[Row[World], ...] = (
    Row("pair-on-few-gpus", "Copies may serve more than a pair here", _replicas,
        "on 2 × B200 two copies of a 27B model gave 8,245 output tokens/s against 6,023 of one "
        "prefill and one decode GPU; the pair won on time per token of long prompts, "
        "9.9 against 32.8 ms (2×B200 report)",
        "docs/engines.md#which-topology", "measure both with your own traffic: "
        "bringup topology.advise", NOTE),
    Row("kimi-k3-vllm-pair", "Kimi K3 output may be wrong in a vLLM pair", _k3_vllm,
        "an open issue reports silently corrupted output of K3 in 1P1D on vLLM",
        "https://github.com/vllm-project/vllm/issues/52627",
        "prove output against an aggregated worker first, or use dynamo.sglang"),
)  # fmt: skip
