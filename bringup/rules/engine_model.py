"""Does this model run here: memory, engine version, parallelism, speculation, caches."""

from __future__ import annotations

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.reading import Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, unknown, warned
from ..core.version import at_least, within
from ..probes.gpu import Gpu, Gpus
from ..probes.memory import Memory
from .where import SGLANG, VLLM, for_worker, is_kimi_k3, number, said

FIT = "docs/engines.md#does-the-model-fit"
SPECULATION = "docs/engines.md#speculative-decoding"
CACHE = "docs/engines.md#hierarchical-cache"
K3 = "docs/engines.md#kimi-k3"
PAIRS = "docs/engines.md#dynamo-and-sglang-versions"

FRACTION = 0.9  # of GPU memory, where nobody set memory_fraction
SPARE = 0.10  # proposed: less than this share left over for KV cache is a warning
GB_PER_GIB = 1.073741824
RESERVE_GIB = 10  # host memory that SGLang leaves to the host


def gpus_used(world: World, role: Role) -> tuple[Gpu, ...] | None:
    """Return the GPUs that a worker takes on this host, or None when nobody could look."""
    seen = world.facts[Gpus]
    if not isinstance(seen, Known):
        return None
    return tuple(g for g in seen.value.gpus if not role.gpus or g.index in role.gpus)


def _nodes(world: World, role: Role) -> int:
    worker = next((w for w in role.workers if world.host.name in w), (world.host.name,))
    return len(worker)


@for_worker
def _fits(world: World, deployment: Deployment, role: Role) -> Seen | None:
    weights = deployment.model.weights_gib
    if weights is None:
        return unknown("the deployment does not state model.weights_gib")
    gpus = gpus_used(world, role)
    if gpus is None:
        seen = world.facts[Gpus]
        why = seen.why if isinstance(seen, Unknown) else "no GPU was found"
        return failed(f"{weights:.0f} GiB of weights, GPUs unknown: {why}")
    if any(gpu.memory_mib is None for gpu in gpus):
        return unknown("the driver does not tell the memory of a GPU")
    copies = number(world, "data_parallel", 1) if deployment.engine in VLLM else 1
    fraction = float(said(world, "memory_fraction") or FRACTION)
    total = sum(gpu.memory_mib or 0 for gpu in gpus) * _nodes(world, role) / 1024
    room = total * fraction / max(1, copies)
    what = (
        f"{weights:.0f} GiB of weights, {room:.0f} GiB usable: {len(gpus) * _nodes(world, role)} "
        f"GPUs, {total:.0f} GiB, {fraction:g} of it" + (f", {copies} copies" if copies > 1 else "")
    )
    if weights > room:
        return failed(what)
    return warned(what) if weights > room * (1 - SPARE) else passed(what)


@for_worker
def _gpu_numbers(world: World, deployment: Deployment, role: Role) -> Seen | None:
    """All of a worker's GPUs exist, and its parallel sizes come to no more than there are."""
    seen = world.facts[Gpus]
    if not isinstance(seen, Known):
        return None
    have = {gpu.index for gpu in seen.value.gpus}
    missing = sorted(set(role.gpus) - have)
    if missing:
        return failed(f"role {role.name} takes GPU {missing[0]}; {len(have)} are there")
    count = (len(role.gpus) or len(have)) * _nodes(world, role)
    sizes = {k: number(world, k, 1) for k in ("tensor_parallel", "pipeline_parallel")}
    if deployment.engine in VLLM or said(world, "data_parallel_attention") is not True:
        sizes["data_parallel"] = number(world, "data_parallel", 1)
    need = 1
    for size in sizes.values():
        need *= size
    product = " × ".join(f"{k} {v}" for k, v in sizes.items() if v > 1)
    return failed(f"{product} needs {need} GPUs; the worker has {count}") if need > count else None


@for_worker
def moe_copies(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    copies = number(world, "data_parallel", 1)
    if deployment.engine not in VLLM or copies < 2 or not deployment.model.mixture_of_experts:
        return None
    version = deployment.image.engine_version
    what = f"{deployment.model.served_name} is a mixture of experts, data_parallel = {copies}"
    inside = within(version, "0.24.0", "0.25.0")
    remedy = f"set tensor_parallel: {copies} and remove data_parallel"
    if inside:
        return failed(what, f"vLLM {version}", remedy=remedy)
    why = f"nobody has reported this on vLLM {version or '(version not stated)'}"
    return Seen(Status.WARN, (what, why), remedy=f"if it dies at start, {remedy}")


@for_worker
def _kimi_version(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if not is_kimi_k3(deployment):
        return None
    floor = "0.5.17" if deployment.engine == SGLANG else "0.27.0"
    version = deployment.image.engine_version
    enough = at_least(version, floor)
    name = "SGLang" if deployment.engine == SGLANG else "vLLM"
    if enough is None:
        return unknown(f"nobody said which {name} the image {deployment.image.name} holds")
    what = f"{name} {version}; Kimi K3 is in {floor} and later"
    return passed(what) if enough else failed(what, remedy=f"use {name} {floor} or later")


@for_worker
def _kimi_code(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if not is_kimi_k3(deployment):
        return None
    if said(world, "trust_remote_code") is False:
        return failed("trust_remote_code: false")
    return Seen(Status.PASS, ("architecture kimi_k3",), {"trust_remote_code": True})


@for_worker
def _kimi_b200(world: World, deployment: Deployment, role: Role) -> Seen | None:
    gpus = gpus_used(world, role) or ()
    if not is_kimi_k3(deployment) or deployment.engine != SGLANG:
        return None
    if not gpus or not all("B200" in gpu.name for gpu in gpus):
        return None
    choices: dict[str, Scalar] = {
        "flashinfer_autotune": False, "watchdog_timeout_s": 3600, "multithread_load": True,
    }  # fmt: skip
    return Seen(Status.PASS, (f"{len(gpus)} × {gpus[0].name}",), choices)


@for_worker
def _dynamo_pair(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    """Dynamo imports SGLang's own modules, which moved between versions."""
    if deployment.engine != SGLANG:
        return None
    dynamo, sglang = deployment.image.dynamo_version, deployment.image.engine_version
    what = f"Dynamo {dynamo or '(not stated)'} with SGLang {sglang or '(not stated)'}"
    if not dynamo or not sglang:
        return unknown(what)
    for since, until, first, end in SUITED:
        if within(dynamo, since, until):
            return passed(what) if within(sglang, first, end) else failed(what)
    return unknown(f"{what}: nobody has tried this Dynamo version")


# Dynamo [since, until) imports from SGLang [first, end), by static import checks of the wheels.
SUITED = (("1.3.0", "1.4.0", "0.5.14", "0.5.19"), ("1.6.0", "", "0.5.19", ""))


@for_worker
def _unpublished(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if deployment.image.dynamo_version != "1.3.0":
        return None
    return failed(
        "dynamo_version: 1.3.0",
        remedy="write 1.3.0.post1 (or 1.3.1): `==1.3.0` matches no post release",
    )


@for_worker
def _draft(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if said(world, "speculative_algorithm") != "DSPARK":
        return None
    if said(world, "speculative_draft_path") is not None:
        return None
    path = deployment.model.draft_path
    if not path:
        return failed("speculative_algorithm = DSPARK, no draft model")
    return Seen(Status.PASS, (f"model.draft_path = {path}",), {"speculative_draft_path": path})


@for_worker
def _dspark(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if said(world, "speculative_algorithm") != "DSPARK":
        return None
    block, tokens = number(world, "speculative_block_size", 0), number(
        world, "speculative_draft_tokens", 0
    )  # fmt: skip
    if block and tokens and tokens != block + 1:
        return failed(
            f"speculative_block_size = {block}, speculative_draft_tokens = {tokens}",
            remedy=f"set speculative_draft_tokens: {block + 1}, or leave it out",
        )
    stages = number(world, "pipeline_parallel", 1)
    if stages > 1 and within(deployment.image.engine_version, "0.5.16", "0.5.19"):
        return failed(f"DSPARK with pipeline_parallel = {stages}")
    return None


@for_worker
def _window(world: World, _deployment: Deployment, _role: Role) -> Seen | None:
    window = said(world, "speculative_draft_window")
    if window is None or said(world, "speculative_algorithm") != "DSPARK":
        return None
    return warned(f"speculative_draft_window = {window} with DSPARK: left out")


@for_worker
def _pool(_world: World, _deployment: Deployment, role: Role) -> Seen | None:
    if role.max_context is None:
        return None
    said_ = f"role {role.name}: max_context {role.max_context}"
    return Seen(Status.PASS, (said_,), {"max_model_len": role.max_context})


@for_worker
def _cache_side(world: World, deployment: Deployment, role: Role) -> Seen | None:
    if role.mode is not Mode.DECODE or said(world, "hierarchical_cache") is not True:
        return None
    own = "hierarchical_cache" in role.knobs or "hierarchical_cache" in world.host.knobs
    if own:
        return failed(f"role {role.name} is decode and sets hierarchical_cache: true")
    return Seen(
        Status.WARN,
        (f"{deployment.name} sets hierarchical_cache for all roles; left out of {role.name}",),
        level=Level.NOTE,
    )


@for_worker
def _cache_memory(world: World, deployment: Deployment, role: Role) -> Seen | None:
    """The host pool is a multiple of the GPU pool; it must fit into what the host has."""
    wanted = said(world, "hierarchical_cache") is True and role.mode is not Mode.DECODE
    if not wanted or said(world, "hicache_size_gb") is not None:
        return None
    memory, pool = world.facts[Memory], _kv_pool_gib(world, deployment, role)
    if not isinstance(memory, Known) or pool is None:
        return unknown("host memory, GPUs or weights not known: the host pool is not checked")
    ratio = float(said(world, "hicache_ratio") or 2.0)
    room = memory.value.available_mib / 1024 - RESERVE_GIB
    what = f"{ratio:g} × {pool:.0f} GiB of KV pool, {room:.0f} GiB of host memory to spare"
    if ratio * pool <= room:
        return passed(what) if ratio * pool <= room * 0.8 else warned(what)
    size = int(room * 0.8 * GB_PER_GIB / len(gpus_used(world, role) or (0,)))
    if size < 1:
        return failed(what, remedy="set hierarchical_cache: false on this host")
    return warned(what, decide={"hicache_size_gb": size})


def _kv_pool_gib(world: World, deployment: Deployment, role: Role) -> float | None:
    """Return about how much GPU memory of this host is left for KV, or None if not known."""
    gpus, weights = gpus_used(world, role), deployment.model.weights_gib
    if not gpus or weights is None or any(gpu.memory_mib is None for gpu in gpus):
        return None
    fraction = float(said(world, "memory_fraction") or FRACTION)
    total = sum(gpu.memory_mib or 0 for gpu in gpus) / 1024
    return total * fraction - weights / _nodes(world, role)


BLOCKS = {Status.UNKNOWN: Level.BLOCK}

ROWS: tuple[Row[World], ...] = (
    Row("model-fits", "The model fits these GPUs", _fits,
        "weights that do not fit fail after minutes of loading",
        FIT, "use hosts with more GPU memory, more hosts a worker, or a smaller precision"),
    Row("gpu-count", "The parallel sizes suit the GPUs", _gpu_numbers,
        "an engine that asks for a GPU that is not there dies at start",
        FIT, "lower tensor_parallel, data_parallel or pipeline_parallel"),
    Row("moe-data-parallel", "Mixture of experts in copies on vLLM", moe_copies,
        "on vLLM 0.24 both attempts died at start: a MoE warm-up assertion, then the MoE forward "
        "while memory was profiled (2×B200 report, gemma-4 FP8)",
        "docs/engines.md#mixture-of-experts-with-data-parallel",
        levels={Status.WARN: Level.NOTE}),
    Row("kimi-k3-engine-version", "The engine knows Kimi K3", _kimi_version,
        "older versions have neither the model nor its parsers", K3,
        "state engine.version in images/NAME/image.yml, or ask: "
        "bringup engine.inspect IMAGE --host HOST",
        BLOCKS),
    Row("kimi-k3-remote-code", "Kimi K3 brings its own tokenizer code", _kimi_code,
        "K3's tokenizer and configuration are Python files in the model folder", K3,
        "read them, then take trust_remote_code: false out of the deployment"),
    Row("kimi-k3-on-b200", "Kimi K3 on B200", _kimi_b200,
        "the public B200 recipe turns autotuning off and lets one batch take an hour", K3),
    Row("dynamo-sglang-versions", "Dynamo and SGLang suit each other", _dynamo_pair,
        "Dynamo 1.3 imports modules that SGLang moved in 0.5.19; Dynamo 1.6 needs the new place",
        PAIRS, "use SGLang 0.5.14 to 0.5.18 with Dynamo 1.3, 0.5.19 or later with Dynamo 1.6"),
    Row("dynamo-version-published", "The Dynamo version exists", _unpublished,
        "ai-dynamo 1.3.0 was never published, only 1.3.0.post1 and 1.3.1", PAIRS),
    Row("dspark-draft", "DSPARK has a draft model", _draft,
        "SGLang refuses DSPARK without a draft unless the checkpoint holds one", SPECULATION,
        "set model.draft_path (public: RadixArk/Kimi-K3-DSpark), or speculative_draft_path: "
        "bundled when the checkpoint holds it"),
    Row("dspark-sizes", "DSPARK's sizes suit each other", _dspark,
        "the tokens checked at once are the drafted block and one more; stages are not supported",
        SPECULATION, "remove pipeline_parallel"),
    Row("dspark-draft-window", "DSPARK has no draft window", _window,
        "only EAGLE3 and DFLASH read it; with DSPARK SGLang warns and ignores it", SPECULATION,
        "remove speculative_draft_window", {Status.WARN: Level.NOTE}),
    Row("pool-context", "A pool's longest request", _pool,
        "an engine that knows it reserves no more KV cache than the pool needs",
        "docs/engines.md#pairs"),
    Row("hierarchical-cache-on-decode", "Hierarchical cache on prefill only", _cache_side,
        "decode mode turns the radix cache off, and SGLang refuses the hierarchical cache then",
        CACHE, "move hierarchical_cache to the prefill role"),
    Row("hierarchical-cache-memory", "Host memory holds the hierarchical cache", _cache_memory,
        "a host pool beyond host memory fails at start or swaps", CACHE,
        "lower hicache_ratio, or set hicache_size_gb"),
)  # fmt: skip
