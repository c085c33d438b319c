"""What no list of flags tells: pairs that exclude each other, flags that do nothing, and why.

One row each, with the versions it holds for. A test returns the words that it saw, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.rules import Level
from ..core.version import within
from .quirk_tests import (
    Test,
    above,
    broken_json,
    every,
    has,
    in_json,
    lacks,
    no_variable,
    one_port_twice,
    some,
    variable,
    variable_above,
)
from .words import Words


@dataclass(frozen=True, slots=True)
class Quirk:
    """One thing that a parser's list does not tell. Versions are [since, until).

    `package` "" means every engine.
    """

    id: str
    package: str
    when: Test
    level: Level
    title: str
    reason: str
    remedy: str
    source: str
    since: str = ""
    until: str = ""

    def holds(self, version: str) -> bool:
        """Return whether it holds for a version; for an unknown one only if for all of them."""
        inside = within(version, self.since, self.until)
        return not (self.since or self.until) if inside is None else inside


@dataclass(frozen=True, slots=True)
class Moved:
    """A variable that went away, and what took its place."""

    instead: str
    reason: str


PREFILL = has("--disaggregation-mode", "prefill")
DECODE = has("--disaggregation-mode", "decode")
SIDE = some(PREFILL, DECODE)
DSPARK = has("--speculative-algorithm", "DSPARK")
DCP = some(above("--dcp-size", 1), above("--decode-context-parallel-size", 1))
RADIX = has("--disaggregation-decode-enable-radix-cache")
HICACHE = has("--enable-hierarchical-cache")
NIXL = has("--disaggregation-transfer-backend", "nixl")

SPECULATION = "docs/engines.md#speculative-decoding"
CACHE = "docs/engines.md#hierarchical-cache"
DISAGGREGATION = "docs/engines.md#pairs"
DEVICES = "docs/engines.md#rdma-devices"
VLLM_PAIR = "docs/engines.md#nixl"


def _not_dspark(words: Words) -> tuple[str, ...]:
    given = words.value("--speculative-algorithm")
    return (f"--speculative-algorithm {given}",) if given not in (None, "DSPARK") else ()


def _k3_backend(words: Words) -> tuple[str, ...]:
    given = words.value("--decode-attention-backend") or words.value("--attention-backend")
    good = given in ("cutedsl_mla", "tokenspeed_mla")
    return () if good else (f"decode attention backend {given or 'not set'}",)


def _wrong_tokens(words: Words) -> tuple[str, ...]:
    block = words.value("--speculative-dspark-block-size") or ""
    tokens = words.value("--speculative-num-draft-tokens") or ""
    if block.isdecimal() and tokens.isdecimal() and int(tokens) != int(block) + 1:
        return (f"block {block}, draft tokens {tokens}",)
    return ()


QUIRKS: tuple[Quirk, ...] = (
    Quirk("ucx-device-without-port", "",
          variable("UCX_NET_DEVICES", r"(^|,)mlx5_\w+(,|$)"), Level.BLOCK,
          "UCX wants a device with its port", "without the port UCX finds no such device",
          "write each with :1, or leave the list out: it is computed on each host", DEVICES),
    Quirk("json-broken", "", broken_json, Level.BLOCK,
          "A value that should be JSON is none", "names and words want double quotes in JSON",
          "write it as '{\"key\": \"value\"}', quoted as a whole", "https://www.json.org"),
    Quirk("one-port-twice", "", one_port_twice, Level.BLOCK,
          "One worker listens twice on a port", "the second of both ends the worker at its start",
          "leave the ports out, or give each its own", "docs/engines.md#addresses-and-ports"),
    Quirk("nccl-device-by-prefix", "", variable("NCCL_IB_HCA", r"^[^=^]"), Level.WARN,
          "NCCL matches device names by prefix", "mlx5_1 also takes mlx5_10 to mlx5_19",
          "start the list with =, or leave it out: it is computed on each host", DEVICES),
    Quirk("system-port-too-high", "", variable_above("DYN_SYSTEM_PORT", 32767), Level.BLOCK,
          "Dynamo reads its system port as a 16-bit signed number",
          "a port above 32767 ends the worker at start, in Dynamo 1.3.0.post1 and 1.6.1",
          "set system_port to 32767 or less", "docs/engines.md#addresses-and-ports"),
    Quirk("hierarchical-cache-in-decode", "sglang", every(DECODE, HICACHE), Level.BLOCK,
          "A decode worker has no hierarchical cache",
          "decode mode turns the radix cache off, which the hierarchical cache needs (ValueError)",
          "remove --enable-hierarchical-cache from the decode role", CACHE),
    Quirk("decode-radix-cache-with-speculation", "sglang",
          every(RADIX, has("--speculative-algorithm")), Level.BLOCK,
          "A decode radix cache excludes speculation",
          "SGLang refuses it with any speculative algorithm",
          "remove one of the two", CACHE, since="0.5.18"),
    Quirk("decode-radix-cache-with-dcp", "sglang", every(RADIX, DCP), Level.BLOCK,
          "A decode radix cache excludes context parallel decode",
          "SGLang refuses the pair", "remove one of the two", CACHE, since="0.5.15"),
    Quirk("hierarchical-cache-storage-with-dcp", "sglang",
          every(HICACHE, DCP, has("--hicache-storage-backend")), Level.BLOCK,
          "The hierarchical cache has no storage backend with context parallel decode",
          "SGLang refuses a storage level there",
          "remove --hicache-storage-backend", CACHE, since="0.5.15"),
    Quirk("hierarchical-cache-dcp-speculation", "sglang", every(HICACHE, DCP, _not_dspark),
          Level.BLOCK, "Only DSPARK speculates with the hierarchical cache and context parallel",
          "SGLang accepts no other algorithm there", "use DSPARK, or none", CACHE,
          since="0.5.16"),
    Quirk("dspark-without-draft", "sglang",
          every(DSPARK, lacks("--speculative-draft-model-path", "--speculative-draft-model")),
          Level.BLOCK, "DSPARK needs a draft model",
          "SGLang raises ValueError unless the checkpoint holds the draft",
          "set model.draft_path in the deployment (public: RadixArk/Kimi-K3-DSpark)",
          SPECULATION, since="0.5.16"),
    Quirk("dspark-draft-tokens", "sglang", every(DSPARK, _wrong_tokens), Level.BLOCK,
          "DSPARK checks its block and one more token",
          "--speculative-num-draft-tokens must be the block size and one more",
          "leave --speculative-num-draft-tokens out", SPECULATION, since="0.5.16"),
    Quirk("dspark-with-stages", "sglang",
          every(DSPARK, some(above("--pp-size", 1), above("--pipeline-parallel-size", 1))),
          Level.BLOCK, "DSPARK excludes pipeline stages", "SGLang asks for pp_size 1",
          "remove --pp-size", SPECULATION, since="0.5.16", until="0.5.19"),
    Quirk("draft-window-without-effect", "sglang",
          every(DSPARK, has("--speculative-draft-window-size")), Level.WARN,
          "DSPARK has no draft window",
          "only EAGLE3 and DFLASH read it; SGLang warns and ignores it",
          "remove --speculative-draft-window-size", SPECULATION, since="0.5.16"),
    Quirk("dcp-dspark-verify-mode", "sglang",
          every(DSPARK, DCP, some(no_variable("SGLANG_RAGGED_VERIFY_MODE", "static"),
                                  _k3_backend)),
          Level.BLOCK, "DSPARK with context parallel decode needs two more settings",
          "Kimi K3 needs SGLANG_RAGGED_VERIFY_MODE=static and decode backend cutedsl_mla or "
          "tokenspeed_mla there", "set both, or remove --dcp-size", SPECULATION, since="0.5.17"),
    Quirk("dcp-dspark-pair-hangs", "sglang", every(DSPARK, DCP, SIDE), Level.WARN,
          "Hangs are reported for DSPARK with context parallel decode in a pair",
          "open reports: sglang#33043, sglang#34343", "prove it with a soak before serving",
          "https://github.com/sgl-project/sglang/issues/33043", since="0.5.16"),
    Quirk("ib-device-without-effect", "sglang",
          every(NIXL, has("--disaggregation-ib-device")), Level.WARN,
          "NIXL does not read --disaggregation-ib-device",
          "up to 0.5.22 only Mooncake reads it; UCX takes any device then and may hang",
          "remove it; UCX_NET_DEVICES is computed on each host", DEVICES, until="0.5.23"),
    Quirk("replayssm-in-prefill", "sglang",
          every(PREFILL, has("--enable-linear-replayssm-spec")), Level.BLOCK,
          "Replay of state belongs to decode", "a prefill worker rejects it",
          "move --enable-linear-replayssm-spec to the decode role", SPECULATION,
          since="0.5.17"),
    Quirk("transfer-backend-not-named", "sglang",
          every(SIDE, lacks("--disaggregation-transfer-backend")), Level.WARN,
          "The transfer backend is not named", "SGLang takes mooncake then",
          "set transfer_backend: nixl", DISAGGREGATION),
    Quirk("bootstrap-port-random", "dynamo.sglang",
          every(PREFILL, lacks("--disaggregation-bootstrap-port")), Level.WARN,
          "The bootstrap port is random", "dynamo.sglang takes a free port unless told one; "
          "a firewall cannot be opened for it", "set bootstrap_port", DISAGGREGATION),
    Quirk("two-tool-call-parsers", "dynamo.sglang",
          every(has("--tool-call-parser"), has("--dyn-tool-call-parser")), Level.BLOCK,
          "Tool calls are read twice", "setting both parsers is an error",
          "keep one: tool_call_parser or dynamo_tool_call_parser",
          "docs/engines.md#etcd-nats-and-the-frontend"),
    Quirk("pair-without-transfer", "dynamo.vllm",
          every(SIDE, lacks("--kv-transfer-config")), Level.BLOCK,
          "A pair needs a KV transfer", "dynamo.vllm refuses disaggregation without it",
          "set transfer_backend: nixl", VLLM_PAIR),
    Quirk("old-role-flags", "dynamo.vllm",
          some(has("--is-prefill-worker"), has("--is-decode-worker")), Level.WARN,
          "Role flags of an older Dynamo", "deprecated in favour of --disaggregation-mode",
          "remove them: the role's mode says it", VLLM_PAIR),
    Quirk("hybrid-manager-off", "vllm",
          every(has("--kv-transfer-config"), has("--disable-hybrid-kv-cache-manager")),
          Level.BLOCK, "The hybrid KV cache manager must stay on",
          "NIXL transfers of models with convolution state need it",
          "remove --disable-hybrid-kv-cache-manager", VLLM_PAIR, since="0.24.0"),
    Quirk("kv-parallel-size-gone", "vllm", in_json("--kv-transfer-config", "kv_parallel_size"),
          Level.BLOCK, "kv_parallel_size is gone", "vLLM 0.33 no longer knows this key",
          "remove kv_parallel_size", VLLM_PAIR, since="0.33.0"),
)  # fmt: skip

_MOE = Moved("--moe-backend", "deprecated in 0.22, gone in vLLM 0.24")

MOVED: dict[str, Moved] = {
    "VLLM_ATTENTION_BACKEND": Moved(
        "--attention-backend (knob attention_backend)",
        "gone from vLLM 0.15.0 on: it starts with a warning and chooses FlashInfer all the same",
    ),
    "VLLM_USE_FLASHINFER_MOE_FP4": _MOE,
    "VLLM_USE_FLASHINFER_MOE_FP8": _MOE,
    "VLLM_USE_FLASHINFER_MOE_FP16": _MOE,
    "VLLM_FLASHINFER_MOE_BACKEND": _MOE,
    "VLLM_NIXL_ABORT_REQUEST_TIMEOUT": Moved(
        "kv_lease_duration inside kv_connector_extra_config",
        "the NIXL connector takes it from its own configuration since",
    ),
    "VLLM_ENGINE_READY_TIMEOUT_S": Moved(
        "vLLM 0.14.0 or later",
        "before 0.14.0 the wait is fixed at 600 s and nothing changes it",
    ),
    "VLLM_SSM_CONV_STATE_LAYOUT": Moved(
        "vLLM 0.20.0 or later", "before 0.20.0 the layout cannot be chosen"
    ),
}
