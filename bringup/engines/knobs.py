"""The table of knobs: every setting that facts, rules and people may turn, one row each.

A knob is named after what it means, not after one engine's flag; the engine's table of settings
spells it. `bringup explain KNOB` prints a row. None as default means: the engine decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..core.knobs import Form, Knob, largest, smallest

SGLANG = ("dynamo.sglang",)
VLLM = ("vllm", "dynamo.vllm")
DYNAMO = ("dynamo.sglang", "dynamo.vllm")
HTTP = ("dynamo.sglang", "vllm")  # those that take the flags of the engine's HTTP server

FOLDER = Form(r"|/(?!.*(?:^|/)\.\.(?:/|$))[^\x00\n:]*", "an absolute path without '..' or ':'")
CONTAINER = Form(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*", "a name of letters, digits, '_', '.' and '-'")
RESTART = Form(
    r"no|always|unless-stopped|on-failure(:\d+)?", "no, always, unless-stopped or on-failure:N"
)
SIZE = Form(r"\d+[kmgKMG]?", "a size such as 100m or 64g")
SHM = Form(r"host|\d+[kmgKMG]?", "host, or a size such as 64g")
MEMLOCK = Form(r"unlimited|-1|\d+", "unlimited, or a number of bytes")
HOST = Form(r"[A-Za-z0-9_.:%-]+|\[[0-9A-Fa-f:.%]+\]", "an address or a host name")

START = (
    Knob("ready_timeout_s", int, 600, "longest wait for the worker to serve", "s", largest, low=1),
    Knob("watchdog_timeout_s", int, None, "longest forward batch", "s", largest, SGLANG, low=1),
    Knob("dist_timeout_s", int, None, "longest collective operation", "s", largest, SGLANG, low=1),
    Knob("skip_warmup", bool, None, "serve without a first request of the engine's own",
         engines=SGLANG),
    Knob("load_format", str, None, "how weights are read, such as fastsafetensors"),
    Knob("multithread_load", bool, None, "read weight files with many threads", engines=SGLANG),
)  # fmt: skip

PARALLEL = (
    Knob("tensor_parallel", int, None, "GPUs that share each layer; unset: all that are left",
         low=1),
    Knob("data_parallel", int, None, "copies of the model behind one port", low=1),
    Knob("pipeline_parallel", int, None, "stages that the layers are cut into", low=1),
    Knob("expert_parallel", bool, None, "spread experts over GPUs instead of cutting each",
         engines=VLLM),
    Knob("expert_parallel_size", int, None, "GPUs that experts are spread over",
         engines=SGLANG, low=1),
    Knob("data_parallel_attention", bool, None, "attention in copies, experts shared",
         engines=SGLANG),
    Knob("decode_context_parallel", int, None, "GPUs that share the KV cache of one sequence",
         low=1),
    Knob("nodes", int, None, "hosts of one worker; unset: as many as the role lists", low=1),
    Knob("node_rank", int, None, "this host's place among them; unset: its place in the list",
         low=0),
    Knob("leader_address", str, None, "address of rank 0; unset: its advertised address",
         form=HOST),
    Knob("leader_port", int, 20000, "port of rank 0 for workers of several hosts",
         low=1, high=65535),
)  # fmt: skip

MEMORY = (
    Knob("memory_fraction", float, None, "share of GPU memory for weights and KV cache",
         merge=smallest, low=0.01, high=1),
    Knob("max_model_len", int, None, "longest prompt and answer together", "tokens", smallest,
         low=1),
    Knob("max_running_requests", int, None, "most requests in one batch", merge=smallest, low=1),
    Knob("page_size", int, None, "KV cache page; both roles alike", "tokens", low=1),
    Knob("kv_cache_dtype", str, None, "KV cache type, such as fp8_e4m3; both roles alike"),
    Knob("chunked_prefill_size", int, None, "prompt chunk; 0 turns chunks off", "tokens",
         engines=SGLANG, low=-1),
    Knob("max_prefill_tokens", int, None, "most prompt tokens in one batch", "tokens",
         engines=SGLANG, low=1),
    Knob("max_batched_tokens", int, None, "most tokens in one batch", "tokens",
         engines=VLLM, low=1),
    Knob("hierarchical_cache", bool, None, "keep evicted KV pages in host memory; prefill only",
         engines=SGLANG),
    Knob("hicache_ratio", float, None, "host KV pool as a multiple of the GPU's", merge=smallest,
         engines=SGLANG, low=0.01),
    Knob("hicache_size_gb", int, None, "host KV pool of each GPU; wins over the ratio", "GB",
         smallest, SGLANG, low=0),
    Knob("decode_extra_slots", int, None, "requests a decode worker takes beyond its batch",
         engines=SGLANG, low=0),
)  # fmt: skip

KERNELS = (
    Knob("attention_backend", str, None, "attention kernels: triton, flashinfer, trtllm_mla, …"),
    Knob("prefill_attention_backend", str, None, "attention kernels of prefill", engines=SGLANG),
    Knob("decode_attention_backend", str, None, "attention kernels of decode", engines=SGLANG),
    Knob("flashinfer_sampler", bool, None, "sample with FlashInfer's kernels"),
    Knob("flashinfer_autotune", bool, None, "tune FlashInfer's kernels at start"),
    Knob("deep_gemm", bool, None, "matrix products by DeepGEMM, compiled at run time"),
    Knob("moe_backend", str, None, "kernels of the experts: triton, cutlass, …"),
    Knob("linear_backend", str, None, "kernels of FP8 products: cutlass, triton, …"),
    Knob("mamba_backend", str, None, "kernels of the state space layers"),
    Knob("gdn_prefill_backend", str, None, "kernels of gated delta layers in prefill",
         engines=VLLM),
    Knob("conv_state_layout", str, None, "layout of convolution state; DS for NIXL", engines=VLLM,
         choices=("SD", "DS")),
    Knob("custom_all_reduce", bool, None, "the engine's own all-reduce; false: NCCL's"),
    Knob("trust_remote_code", bool, None, "run Python files that lie in the model folder"),
    Knob("enforce_eager", bool, None, "no compilation, no CUDA graphs; slow", engines=VLLM),
)  # fmt: skip

SPECULATION = (
    Knob("speculative_algorithm", str, None, "DSPARK, EAGLE3, …", engines=SGLANG),
    Knob("speculative_draft_path", str, None, "draft model; unset: the deployment's draft",
         engines=SGLANG),
    Knob("speculative_draft_tokens", int, None, "tokens checked at once; DSPARK: block + 1",
         engines=SGLANG, low=1),
    Knob("speculative_steps", int, None, "draft steps", engines=SGLANG, low=1),
    Knob("speculative_eagle_topk", int, None, "branches per draft step", engines=SGLANG, low=1),
    Knob("speculative_block_size", int, None, "tokens drafted in one block (DSPARK)",
         engines=SGLANG, low=1),
    Knob("speculative_draft_window", int, None, "draft's window (EAGLE3, DFLASH only)", "tokens",
         engines=SGLANG, low=1),
    Knob("speculative_config", str, None, "vLLM's JSON text for speculation", engines=VLLM),
)  # fmt: skip

TRANSFER = (
    Knob("transfer_backend", str, None, "how KV goes from prefill to decode: nixl, mooncake"),
    Knob("bootstrap_port", int, 8998, "where decode finds prefill; both roles alike",
         engines=SGLANG, low=1, high=65535),
    Knob("side_channel_port", int, None, "first NIXL handshake port, one more a replica",
         engines=VLLM, low=1, high=65535),
    Knob("side_channel_host", str, None, "address of the NIXL handshake; unset: advertised",
         engines=VLLM, form=HOST),
    Knob("kv_load_failure", str, None, "when KV does not come: recompute or fail", engines=VLLM,
         choices=("recompute", "fail")),
    Knob("kv_role", str, None, "NIXL role; unset: from the mode", engines=VLLM,
         choices=("kv_producer", "kv_consumer", "kv_both")),
    Knob("ucx_net_devices", str, None, "RDMA devices with ports for KV: mlx5_0:1,…"),
    Knob("ucx_tls", str, None, "UCX transports; unset: UCX chooses, NVLink included"),
    Knob("nccl_ib_hca", str, None, "RDMA devices for NCCL, exact match: =mlx5_0,…"),
    Knob("compute_nics", str, None, "PCI prefixes of RDMA devices that are for KV and NCCL, "
         "whatever the probe thinks: 0000:18,0000:40"),
    Knob("storage_nics", str, None, "PCI prefixes of RDMA devices that are not"),
    Knob("nccl_cumem", bool, None, "NCCL allocates by cuMem"),
)  # fmt: skip

NETWORK = (
    Knob("port", int, None, "the worker's own HTTP port; unset: the engine's default",
         engines=HTTP, low=1, high=65535),
    Knob("listen_address", str, None, "address the HTTP port listens on; unset: the engine's",
         form=HOST),
    Knob("advertise_host", str, None, "address others reach this host at; unset: the inventory's",
         form=HOST),
    Knob("system_port", int, 8081, "health and metrics of a Dynamo worker",
         engines=DYNAMO, low=1, high=65535),
    Knob("rpc_port", int, None, "requests from the frontend; unset: a random one",
         engines=DYNAMO, low=1, high=65535),
    Knob("self_host_metadata", bool, None, "serve tokenizer files to the frontend",
         engines=DYNAMO),
    Knob("request_plane", str, None, "how requests travel", engines=DYNAMO,
         choices=("tcp", "nats")),
    Knob("event_plane", str, None, "how events travel", engines=DYNAMO, choices=("zmq", "nats")),
    Knob("http_port", int, 8000, "the frontend's or router's HTTP port", low=1, high=65535),
    Knob("reasoning_parser", str, None, "how thinking is told from the answer"),
    Knob("tool_call_parser", str, None, "how tool calls are read",
         engines=HTTP),
    Knob("dynamo_tool_call_parser", str, None, "tool calls read by Dynamo instead",
         engines=DYNAMO),
    Knob("dynamo_reasoning_parser", str, None, "thinking told apart by Dynamo", engines=DYNAMO),
)  # fmt: skip

RUN = (
    Knob("privileges", str, "devices", "what the container may touch",
         choices=("devices", "privileged")),
    Knob("gpu_access", str, "gpus", "how GPUs enter the container; none: a trial without any",
         choices=("gpus", "cdi", "none")),
    Knob("shm", str, "host", "shared memory: host, or a size such as 64g", form=SHM),
    Knob("share_pid", bool, None, "see the host's processes (same-host KV over NVLink)"),
    Knob("memlock", str, "unlimited", "most memory that may be pinned, in bytes", form=MEMLOCK),
    Knob("restart", str, "no", "when the engine restarts the container: no, on-failure:3, …",
         form=RESTART),
    Knob("container_name", str, None, "unset: DEPLOYMENT-ROLE", form=CONTAINER),
    Knob("container_engine", str, "docker", "who runs it", choices=("docker", "podman")),
    Knob("serve_folder", str, "/opt/bringup/serve", "scripts and settings, a folder a deployment",
         form=FOLDER),
    Knob("log_folder", str, "/var/log/bringup", "logs of workers that run without a container",
         form=FOLDER),
    Knob("cache_folder", str, None, "compiled kernels, kept for the next start", form=FOLDER),
    Knob("log_max_size", str, "100m", "log size that is rotated", form=SIZE),
    Knob("log_max_files", int, 5, "rotated logs kept", low=1),
    Knob("venv", str, "", "environment on the host that holds the engine (no container)",
         form=FOLDER),
    Knob("python", str, "python3", "interpreter that runs the engine"),
    Knob("service", bool, False, "also write a systemd unit that runs the script"),
)  # fmt: skip

TABLE = (
    *START, *PARALLEL, *MEMORY, *KERNELS, *SPECULATION, *TRANSFER, *NETWORK, *RUN,
)  # fmt: skip

KNOBS: Mapping[str, Knob] = MappingProxyType({knob.name: knob for knob in TABLE})


def knobs_of(engine: str) -> Mapping[str, Knob]:
    """Return the knobs that an engine has."""
    return {n: k for n, k in KNOBS.items() if not k.engines or engine in k.engines}
