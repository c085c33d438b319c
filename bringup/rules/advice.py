"""Advice: nothing is chosen and nothing stops, but an operator would want to know."""

from __future__ import annotations

from ..core.host import Deployment, Role
from ..core.rules import Level, Row, Seen, Status, World, warned
from .engine_model import gpus_used
from .where import SGLANG, VLLM, for_worker, is_kimi_k3, is_pair, said, shares_host


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


@for_worker
def _dspark_batch(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if deployment.engine != SGLANG or said(world, "speculative_algorithm") != "DSPARK":
        return None
    if said(world, "max_running_requests") is not None:
        return None
    return warned("DSPARK, max_running_requests is not set")


@for_worker
def _k3_attention(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if not is_kimi_k3(deployment) or deployment.engine != SGLANG:
        return None
    names = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
    given = {name: said(world, name) for name in names}
    found = [f"{name} = {value}" for name, value in given.items() if value is not None]
    return warned(*found) if found and len(found) < len(names) else None


@for_worker
def _k3_symmetric(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    if not is_kimi_k3(deployment) or deployment.engine != SGLANG:
        return None
    given = {name.lstrip("-") for name in role.flags}
    return warned("--enable-symm-mem") if "enable-symm-mem" in given else None


NOTE = {Status.WARN: Level.NOTE}

ROWS: tuple[Row[World], ...] = (
    Row("pair-on-few-gpus", "Copies may serve more than a pair here", _replicas,
        "on 2 × B200 two copies of a 27B model gave 8,245 output tokens/s against 6,023 of one "
        "prefill and one decode GPU; the pair won on time per token of long prompts, "
        "9.9 against 32.8 ms (2×B200 report)",
        "docs/engines.md#which-topology", "measure both with your own traffic: "
        "bringup topology.advise", NOTE),
    Row("dspark-batch", "DSPARK lowers the batch", _dspark_batch,
        "SGLang lowers max-running-requests to 48 with DSPARK unless it is set",
        "docs/engines.md#speculative-decoding", "set max_running_requests if 48 is too few", NOTE),
    Row("kimi-k3-attention", "Attention of Kimi K3 is set in part", _k3_attention,
        "SGLang sets trtllm_mla for both phases of K3 only while no attention knob is set: one "
        "cancels the defaults of the others", "docs/engines.md#kimi-k3",
        "set the other phase too, or none", NOTE),
    Row("kimi-k3-symmetric-memory", "Kimi K3 has no symmetric memory", _k3_symmetric,
        "K3 ignores --enable-symm-mem while CUDA graphs are on", "docs/engines.md#kimi-k3",
        "remove enable-symm-mem from the role's flags", NOTE),
    Row("kimi-k3-vllm-pair", "Kimi K3 output may be wrong in a vLLM pair", _k3_vllm,
        "an open issue reports silently corrupted output of K3 in 1P1D on vLLM",
        "https://github.com/vllm-project/vllm/issues/52627",
        "prove output against an aggregated worker first, or use dynamo.sglang"),
)  # fmt: skip
