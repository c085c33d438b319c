"""How vLLM spells the knobs, by version: shared by `vllm` and `dynamo.vllm`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.rules import World
from .build import Piece, chain
from .check import Dialect
from .common import CACHES, TRANSFER, below_folder, visible
from .engine import Setting, Settled, plainly
from .words import flexible

PAIR = (Mode.PREFILL, Mode.DECODE)

# Models with multi-head latent attention have backends of their own.
LATENT = ("kimi_k2", "kimi_k3", "deepseek")
BACKENDS = {"triton": "TRITON_ATTN", "flashinfer": "FLASHINFER", "flash_attn": "FLASH_ATTN"}
LATENT_BACKENDS = {"triton": "TRITON_MLA", "flashinfer": "FLASHINFER_MLA"}


def _attention(value: Scalar, world: World) -> str:
    """Return vLLM's name of an attention backend; other words pass in capitals."""
    model = world.deployment.model.architecture if world.deployment else ""
    names = LATENT_BACKENDS if model.startswith(LATENT) else BACKENDS
    return names.get(str(value).lower(), str(value).upper())


def _skip_warmup(value: Scalar, _world: World) -> str | None:
    return None if value else "skip"


SETTINGS = (
    Setting("tensor_parallel", "--tensor-parallel-size"),
    Setting("data_parallel", "--data-parallel-size"),
    Setting("pipeline_parallel", "--pipeline-parallel-size"),
    Setting("expert_parallel", "--enable-expert-parallel"),
    Setting("decode_context_parallel", "--decode-context-parallel-size"),
    Setting("nodes", "--nnodes"),
    Setting("node_rank", "--node-rank"),
    Setting("memory_fraction", "--gpu-memory-utilization"),
    Setting("max_model_len", "--max-model-len"),
    Setting("max_running_requests", "--max-num-seqs"),
    Setting("max_batched_tokens", "--max-num-batched-tokens"),
    Setting("page_size", "--block-size"),
    Setting("kv_cache_dtype", "--kv-cache-dtype"),
    Setting("attention_backend", variable="VLLM_ATTENTION_BACKEND", until="0.13.0",
            spell=_attention),
    Setting("attention_backend", "--attention-backend", since="0.13.0", spell=_attention),
    Setting("flashinfer_sampler", variable="VLLM_USE_FLASHINFER_SAMPLER"),
    Setting("flashinfer_autotune", "--enable-flashinfer-autotune",
            off="--no-enable-flashinfer-autotune", since="0.23.0"),
    Setting("deep_gemm", variable="VLLM_USE_DEEP_GEMM"),
    Setting("deep_gemm", variable="VLLM_MOE_USE_DEEP_GEMM"),
    Setting("deep_gemm", variable="VLLM_DEEP_GEMM_WARMUP", spell=_skip_warmup),
    Setting("moe_backend", "--moe-backend", since="0.18.0"),
    Setting("linear_backend", "--linear-backend", since="0.22.0"),
    Setting("mamba_backend", "--mamba-backend", since="0.23.0"),
    Setting("gdn_prefill_backend", "--gdn-prefill-backend", since="0.23.0"),
    Setting("conv_state_layout", variable="VLLM_SSM_CONV_STATE_LAYOUT"),
    Setting("custom_all_reduce", off="--disable-custom-all-reduce"),
    Setting("enforce_eager", "--enforce-eager"),
    Setting("speculative_config", "--speculative-config"),
    Setting("reasoning_parser", "--reasoning-parser"),
    Setting("load_format", "--load-format"),
    Setting("trust_remote_code", "--trust-remote-code"),
    Setting("ready_timeout_s", variable="VLLM_ENGINE_READY_TIMEOUT_S", since="0.14.0"),
    Setting("side_channel_port", variable="VLLM_NIXL_SIDE_CHANNEL_PORT", modes=PAIR),
    Setting("side_channel_host", variable="VLLM_NIXL_SIDE_CHANNEL_HOST", modes=PAIR),
    Setting("cache_folder", variable="VLLM_CACHE_ROOT", spell=below_folder("vllm")),
    *CACHES,
    *TRANSFER,
)  # fmt: skip

LOOSE = frozenset({
    "--attention-backend", "--mm-encoder-attn-backend", "--mamba-backend", "--optimization-level",
})  # fmt: skip
"""Flags whose listed choices vLLM itself checks later, more freely (any case, `auto`)."""

_SERVER = (
    "allow-credentials allowed-headers allowed-methods allowed-origins api-key api-server-count "
    "chat-template chat-template-content-format default-chat-template-kwargs "
    "disable-access-log-for-endpoints disable-fastapi-docs disable-uvicorn-access-log "
    "enable-auto-tool-choice enable-force-include-usage enable-log-deltas enable-log-outputs "
    "enable-offline-docs enable-prompt-tokens-details enable-request-id-headers "
    "enable-server-load-tracking enable-ssl-refresh enable-tokenizer-info-endpoint grpc "
    "h11-max-header-count h11-max-incomplete-event-size host log-config-file log-error-stack "
    "lora-modules max-log-len middleware port response-role return-tokens-as-token-ids root-path "
    "ssl-ca-certs ssl-cert-reqs ssl-certfile ssl-ciphers ssl-keyfile tokens-only tool-call-parser "
    "tool-parser-plugin tool-server trust-request-chat-template uds uvicorn-log-level"
)
SERVER = frozenset(f"--{name}" for name in _SERVER.split())
"""Flags of vLLM's HTTP server, which `vllm serve` starts and dynamo.vllm does not.

dynamo.vllm's parser takes the engine's own flags alone (``AsyncEngineArgs``; wheel 1.6.1).
"""


def dialect(*packages: str) -> Dialect:
    """Return how vLLM's parser reads: `_` for `-`, dotted JSON keys, ``-O3``, no short forms."""
    return Dialect(
        packages=packages,
        prefixes=("VLLM_", "DYN_") if len(packages) > 1 else ("VLLM_",),
        spelling=flexible,
        loose=LOOSE,
        lacks=SERVER if len(packages) > 1 else frozenset(),
        abbreviates=False,
    )


def connector(settled: Settled, role: Role, *, both: bool = False) -> Iterator[Piece]:
    """Yield the KV connector of one side of a pair. `both`: the side is told by another flag."""
    backend = settled.get("transfer_backend")
    if role.mode is Mode.AGGREGATED or backend is None:
        return
    usual = "kv_producer" if role.mode is Mode.PREFILL else "kv_consumer"
    said = settled.get("kv_role")
    config = {
        "kv_connector": CONNECTORS.get(str(backend.value), str(backend.value)),
        "kv_role": plainly(said.value) if said else ("kv_both" if both else usual),
    }
    if failure := settled.get("kv_load_failure"):
        config["kv_load_failure_policy"] = plainly(failure.value)
    text = json.dumps(config, separators=(",", ":"))
    yield Piece("--kv-transfer-config", text, (f"role {role.name} is {role.mode.value}",
                                               *chain(backend)))  # fmt: skip


CONNECTORS = {"nixl": "NixlConnector", "mooncake": "MooncakeConnector"}


def leader(settled: Settled) -> Iterator[Piece]:
    """Yield where rank 0 is, for a worker of several hosts; ranks above it serve no clients."""
    address, port = settled.get("leader_address"), settled.get("leader_port")
    rank = settled.get("node_rank")
    if address is None or port is None:
        return
    yield Piece("--master-addr", plainly(address.value), chain(address))
    yield Piece("--master-port", plainly(port.value), chain(port))
    if rank is not None and int(rank.value) > 0:
        yield Piece("--headless", None, chain(rank))


def tool_calls(settled: Settled) -> Iterator[Piece]:
    """Yield the tool call parser with the switch that it needs."""
    if parser := settled.get("tool_call_parser"):
        yield Piece("--enable-auto-tool-choice", None, chain(parser))
        yield Piece("--tool-call-parser", plainly(parser.value), chain(parser))


def tail(settled: Settled, deployment: Deployment, role: Role) -> Iterator[Piece]:
    """Yield what follows the settings in both vLLM engines, extra flags left out."""
    yield from leader(settled)
    yield from tool_calls(settled)
    yield from visible(deployment, role)
