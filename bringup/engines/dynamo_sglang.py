"""dynamo.sglang: an SGLang worker that registers with Dynamo.

`sglang.launch_server` would never register; `dynamo.sglang` takes SGLang's flags and its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.rules import Finding, World
from ..rules.where import said
from .build import Piece, assemble, extra, pieces_of
from .check import Dialect, findings
from .common import CACHES, below_folder, if_address, visible
from .dynamo import MODES, SCRIPTS, mode, services
from .dynamo import SETTINGS as DYNAMO
from .engine import CommandLine, Engine, Setting, Settled, Versions, plainly
from .schema import Schema

PREFILL_SIDE = (Mode.PREFILL, Mode.AGGREGATED)
PAIR = (Mode.PREFILL, Mode.DECODE)


def _sampler(value: Scalar, _world: World) -> str:
    return "flashinfer" if value else "pytorch"


def _chunk(value: Scalar, _world: World) -> str:
    return plainly(value) if int(value) > 0 else "-1"


def _threads(value: Scalar, _world: World) -> str | None:
    return '{"enable_multithread_load": true}' if value else None


def _draft(value: Scalar, world: World) -> str:
    """A draft that the checkpoint holds lies in the model's own folder."""
    bundled = value == "bundled" and world.deployment is not None
    return world.deployment.model.path if bundled and world.deployment else str(value)


def _window(value: Scalar, world: World) -> str | None:
    """DSPARK has no window; the rule dspark-draft-window says that it is left out."""
    return None if said(world, "speculative_algorithm") == "DSPARK" else plainly(value)


SETTINGS = (
    Setting("transfer_backend", "--disaggregation-transfer-backend", modes=PAIR),
    Setting("bootstrap_port", "--disaggregation-bootstrap-port", modes=PAIR),
    Setting("tensor_parallel", "--tp-size"),
    Setting("data_parallel", "--dp-size"),
    Setting("pipeline_parallel", "--pp-size"),
    Setting("expert_parallel_size", "--ep-size"),
    Setting("data_parallel_attention", "--enable-dp-attention"),
    Setting("decode_context_parallel", "--dcp-size", modes=(Mode.DECODE, Mode.AGGREGATED)),
    Setting("nodes", "--nnodes"),
    Setting("node_rank", "--node-rank"),
    Setting("listen_address", "--host"),
    Setting("port", "--port"),
    Setting("memory_fraction", "--mem-fraction-static"),
    Setting("max_model_len", "--context-length"),
    Setting("max_running_requests", "--max-running-requests"),
    Setting("page_size", "--page-size"),
    Setting("kv_cache_dtype", "--kv-cache-dtype"),
    Setting("chunked_prefill_size", "--chunked-prefill-size", modes=PREFILL_SIDE, spell=_chunk),
    Setting("max_prefill_tokens", "--max-prefill-tokens", modes=PREFILL_SIDE),
    Setting("hierarchical_cache", "--enable-hierarchical-cache", modes=PREFILL_SIDE),
    Setting("hicache_ratio", "--hicache-ratio", modes=PREFILL_SIDE),
    Setting("hicache_size_gb", "--hicache-size", modes=PREFILL_SIDE),
    Setting("attention_backend", "--attention-backend"),
    Setting("prefill_attention_backend", "--prefill-attention-backend"),
    Setting("decode_attention_backend", "--decode-attention-backend"),
    Setting("flashinfer_sampler", "--sampling-backend", spell=_sampler),
    Setting("flashinfer_autotune", off="--disable-flashinfer-autotune"),
    Setting("deep_gemm", variable="SGLANG_ENABLE_JIT_DEEPGEMM"),
    Setting("moe_backend", "--moe-runner-backend"),
    Setting("linear_backend", "--fp8-gemm-backend"),
    Setting("mamba_backend", "--mamba-backend"),
    Setting("custom_all_reduce", off="--disable-custom-all-reduce"),
    Setting("speculative_algorithm", "--speculative-algorithm"),
    Setting("speculative_draft_path", "--speculative-draft-model-path", spell=_draft),
    Setting("speculative_block_size", "--speculative-dspark-block-size"),
    Setting("speculative_draft_tokens", "--speculative-num-draft-tokens"),
    Setting("speculative_steps", "--speculative-num-steps"),
    Setting("speculative_eagle_topk", "--speculative-eagle-topk"),
    Setting("speculative_draft_window", "--speculative-draft-window-size", spell=_window),
    Setting("decode_extra_slots", "--disaggregation-decode-extra-slots", modes=(Mode.DECODE,)),
    Setting("reasoning_parser", "--reasoning-parser"),
    Setting("tool_call_parser", "--tool-call-parser"),
    Setting("load_format", "--load-format"),
    Setting("multithread_load", "--model-loader-extra-config", spell=_threads),
    Setting("watchdog_timeout_s", "--watchdog-timeout"),
    Setting("dist_timeout_s", "--dist-timeout"),
    Setting("skip_warmup", "--skip-server-warmup"),
    Setting("trust_remote_code", "--trust-remote-code"),
    Setting("advertise_host", variable="SGLANG_HOST_IP", spell=if_address),
    Setting("cache_folder", variable="SGLANG_CACHE_DIR", spell=below_folder("sglang")),
    *CACHES,
    *DYNAMO,
)


def command(settled: Settled, world: World, deployment: Deployment, role: Role) -> CommandLine:
    """Return the worker's command line in the spelling of the image's SGLang."""
    version = deployment.image.engine_version
    return assemble(
        ("python3", "-m", "dynamo.sglang"),
        (
            *_identity(deployment, role),
            *pieces_of(SETTINGS, settled, world, role.mode, version),
            *_leader(settled),
            *visible(deployment, role),
            *services(deployment),
            *extra(deployment, role),
        ),
    )


def _identity(deployment: Deployment, role: Role) -> Iterator[Piece]:
    model, said = deployment.model, (f"said deployment {deployment.name}",)
    yield Piece("--model-path", model.path, said)
    yield Piece("--served-model-name", model.served_name, said)
    if model.revision and not model.path.startswith("/"):
        yield Piece("--revision", model.revision, said)
    yield from mode(deployment, role)


def _leader(settled: Settled) -> Iterator[Piece]:
    address, port = settled.get("leader_address"), settled.get("leader_port")
    if address is not None and port is not None:
        why = (f"{address.because}, port {plainly(port.value)} said {port.by}",)
        yield Piece("--dist-init-addr", f"{address.value}:{plainly(port.value)}", why)


def versions(deployment: Deployment) -> Versions:
    """Return which lists of flags hold: Dynamo's own, then SGLang's."""
    image = deployment.image
    return {"dynamo.sglang": image.dynamo_version, "sglang": image.engine_version}


# dynamo.sglang reads the mode first and knows more of them. The library checks algorithms itself.
DIALECT = Dialect(
    packages=("dynamo.sglang", "sglang"),
    prefixes=("SGLANG_", "DYN_"),
    choices={
        "--disaggregation-mode": ("agg", "pd", "encode", "null", "prefill", "decode"),
    },
)


def check(
    line: CommandLine, versions: Versions, asked: Iterable[Schema] = ()
) -> tuple[Finding, ...]:
    """Return what these versions would refuse, ignore or misread in a command line."""
    return findings(line, versions, DIALECT, asked)


ENGINE = Engine(
    name="dynamo.sglang",
    title="SGLang worker registered with Dynamo",
    modes=MODES,
    scripts=SCRIPTS,
    settings=SETTINGS,
    command=command,
    check=check,
    versions=versions,
    port=30000,
    registers=True,
)
