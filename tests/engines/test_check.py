"""What a check of a command line says: one recipe that does not work, one finding."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from bringup.core.rules import Finding, Level
from bringup.core.words import Secret
from bringup.engines import ENGINES
from bringup.engines.engine import CommandLine
from bringup.engines.quirks import MOVED, QUIRKS
from bringup.engines.schema import Flag, Schema
from tests.conftest import ROOT

K3_IMAGE = {"dynamo.sglang": "1.3.0.post1", "sglang": "0.5.18"}
VLLM = {"vllm": "0.24.0"}
PREFILL = ("--disaggregation-mode", "prefill", "--disaggregation-transfer-backend", "nixl",
           "--disaggregation-bootstrap-port", "8998")  # fmt: skip
DECODE = ("--disaggregation-mode", "decode", "--disaggregation-transfer-backend", "nixl")
DSPARK = ("--speculative-algorithm", "DSPARK", "--speculative-draft-model-path", "/draft")
DCP = ("--dcp-size", "8")


@dataclass(frozen=True)
class Case:
    """Words on top of a program, the versions, and what should be said (`id` "" for nothing)."""

    claim: str
    engine: str
    versions: dict[str, str]
    words: tuple[str, ...]
    id: str = ""
    level: Level | None = None
    says: str = ""
    does: str = ""
    env: dict[str, str | Secret] = field(default_factory=dict)


def sglang(claim: str, *words: str, version: str = "0.5.18", **more: object) -> Case:
    dynamo = "1.3.0.post1" if version < "0.5.19" else "1.6.1"
    held = {"dynamo.sglang": dynamo, "sglang": version}
    return Case(claim, "dynamo.sglang", held, words, **more)  # type: ignore[arg-type]


def vllm(claim: str, *words: str, version: str = "0.24.0", **more: object) -> Case:
    return Case(claim, "vllm", {"vllm": version}, words, **more)  # type: ignore[arg-type]


BLOCK, WARN, NOTE = Level.BLOCK, Level.WARN, Level.NOTE
CASES = [
    sglang("a whole good line", *DECODE, *DSPARK, "--tp-size", "8", "--trust-remote-code"),
    sglang("a wrong flag", "--chunked-prefil-size", "8", id="flag-unknown", level=BLOCK,
           says="did you mean --chunked-prefill-size"),
    sglang("a flag of a later version", "--speculative-dspark-block-size", "7", version="0.5.14",
           id="flag-not-yet", level=BLOCK, says="it is in 0.5.17", does="0.5.17 or later"),
    sglang("a flag of an earlier version", "--mamba-scheduler-strategy", "auto",
           version="0.5.21", id="flag-gone", level=BLOCK, says="0.5.18 still had it"),
    sglang("a choice of a later version", "--attention-backend", "dsa", version="0.5.9",
           id="flag-choice", level=BLOCK, says="is no choice"),
    sglang("a misspelt choice", "--sampling-backend", "pytorhc", id="flag-choice", level=BLOCK,
           says="did you mean pytorch", does="pytorch"),
    sglang("a missing value", "--page-size", id="flag-needs-value", level=BLOCK),
    sglang("a value too many", "--trust-remote-code", "yes", id="flag-extra-value", level=BLOCK),
    sglang("a negative value is a value", "--chunked-prefill-size", "-1"),
    sglang("a value behind an equals sign", "--page-size=64"),
    sglang("a flag given twice", "--page-size", "1", "--page-size", "64", id="flag-twice",
           level=BLOCK, says="1, 64"),
    vllm("JSON that a shell took the quotes from", "--speculative-config", "{method:mtp}",
         id="json-broken", level=BLOCK, says="{method:mtp}"),
    vllm("JSON that is whole", "--speculative-config", '{"method": "mtp"}'),
    sglang("a deprecated flag", "--cuda-graph-max-bs", "8", id="flag-deprecated", level=NOTE),
    sglang("an abbreviated flag", "--trust-remote", id="flag-abbreviated", level=WARN,
           says="short for --trust-remote-code"),
    sglang("Dynamo's own modes", "--disaggregation-mode", "agg"),
    sglang("a version between two lists", "--dcp-size", "2", version="0.5.16",
           id="version-between", level=NOTE, says="0.5.15.post1 and 0.5.17"),
    sglang("a flag that only one neighbour has", "--enable-linear-replayssm-spec",
           version="0.5.16", id="flag-unsure", level=WARN, says="in sglang 0.5.17"),
    Case("an image of unknown version", "dynamo.sglang",
         {"sglang": "", "dynamo.sglang": "1.3.0.post1"}, ("--namespace", "x"),
         "version-unknown", WARN, "nothing checked", "engine.inspect"),
    Case("a flag of no listed version where nobody told which it is", "dynamo.sglang",
         {"sglang": "", "dynamo.sglang": "1.3.0.post1"}, ("--tp-sise", "8"),
         "flag-unsure", WARN, "did you mean --tp-size", "engine.inspect"),
    sglang("a secret on the command line", "--api-key", "abc", id="secret-on-command-line",
           level=BLOCK, does="0600"),
    sglang("a variable nobody reads", id="variable-unknown", level=WARN,
           env={"SGLANG_HOST_PI": "10.0.0.4"}, says="SGLANG_HOST_IP"),
    sglang("a variable of a library", env={"UCX_LOG_LEVEL": "info", "NCCL_DEBUG": "INFO"}),
    sglang("a UCX device without a port", env={"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1"},
           id="ucx-device-without-port", level=BLOCK),
    sglang("an NCCL list without a sign", env={"NCCL_IB_HCA": "mlx5_1"},
           id="nccl-device-by-prefix", level=WARN),
    sglang("hierarchical cache in decode", *DECODE, "--enable-hierarchical-cache",
           id="hierarchical-cache-in-decode", level=BLOCK),
    sglang("hierarchical cache in prefill", *PREFILL, "--enable-hierarchical-cache"),
    sglang("decode radix cache with speculation", *DECODE, *DSPARK,
           "--disaggregation-decode-enable-radix-cache",
           id="decode-radix-cache-with-speculation", level=BLOCK),
    sglang("decode radix cache with context parallel", *DECODE, *DCP,
           "--disaggregation-decode-enable-radix-cache", id="decode-radix-cache-with-dcp",
           level=BLOCK),
    sglang("cache storage with context parallel", *PREFILL, *DCP, "--enable-hierarchical-cache",
           "--hicache-storage-backend", "file", id="hierarchical-cache-storage-with-dcp",
           level=BLOCK),
    sglang("EAGLE3 with cache and context parallel", *PREFILL, *DCP, "--speculative-algorithm",
           "EAGLE3", "--enable-hierarchical-cache", id="hierarchical-cache-dcp-speculation",
           level=BLOCK),
    sglang("DSPARK without a draft", *DECODE, "--speculative-algorithm", "DSPARK",
           id="dspark-without-draft", level=BLOCK, does="model.draft_path"),
    sglang("DSPARK's tokens", *DECODE, *DSPARK, "--speculative-dspark-block-size", "7",
           "--speculative-num-draft-tokens", "7", id="dspark-draft-tokens", level=BLOCK),
    sglang("DSPARK with stages", *DECODE, *DSPARK, "--pp-size", "2", id="dspark-with-stages",
           level=BLOCK),
    sglang("DSPARK with a window", *DECODE, *DSPARK, "--speculative-draft-window-size", "4096",
           id="draft-window-without-effect", level=WARN),
    sglang("DSPARK with context parallel", *DECODE, *DSPARK, *DCP, id="dcp-dspark-verify-mode",
           level=BLOCK, does="set both"),
    sglang("the same in a pair hangs", *DECODE, *DSPARK, *DCP, id="dcp-dspark-pair-hangs",
           level=WARN),
    sglang("a device flag that nixl ignores", *DECODE, "--disaggregation-ib-device", "mlx5_0",
           id="ib-device-without-effect", level=WARN),
    sglang("a device flag that 0.5.23 reads", *DECODE, "--disaggregation-ib-device", "mlx5_0",
           version="0.5.23"),
    sglang("replay of state in prefill", *PREFILL, "--enable-linear-replayssm-spec",
           id="replayssm-in-prefill", level=BLOCK),
    sglang("mooncake by default", "--disaggregation-mode", "decode",
           id="transfer-backend-not-named", level=WARN),
    sglang("a random bootstrap port", *PREFILL[:4], id="bootstrap-port-random", level=WARN),
    sglang("tool calls read twice", "--tool-call-parser", "kimi_k3", "--dyn-tool-call-parser",
           "kimi_k2", id="two-tool-call-parsers", level=BLOCK),
    vllm("attention by a variable on 0.24", id="variable-not-read", level=BLOCK,
         env={"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"}, does="--attention-backend"),
    vllm("attention by a variable on 0.12", version="0.12.0",
         env={"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"}),
    vllm("experts by a variable on 0.24", id="variable-not-read", level=BLOCK,
         env={"VLLM_USE_FLASHINFER_MOE_FP8": "0"}, does="--moe-backend"),
    vllm("an abort timeout on 0.24", id="variable-not-read", level=BLOCK,
         env={"VLLM_NIXL_ABORT_REQUEST_TIMEOUT": "480"}, does="kv_lease_duration"),
    vllm("a ready timeout on 0.12", version="0.12.0", id="variable-not-read", level=BLOCK,
         env={"VLLM_ENGINE_READY_TIMEOUT_S": "1800"}, says="0.14.0 read it"),
    vllm("attention by a flag on 0.12", "--attention-backend", "TRITON_ATTN", version="0.12.0",
         id="flag-not-yet", level=BLOCK),
    vllm("an attention backend in small letters", "--attention-backend", "triton_attn"),
    vllm("underscores and a level", "--tensor_parallel_size", "2", "-O3"),
    vllm("short forms", "-tp", "2", "-ac.backend=TRITON_ATTN"),
    vllm("dotted keys", "--kv-transfer-config.kv_connector=NixlConnector",
         "--kv-transfer-config.kv_role=kv_both"),
    vllm("a hybrid manager that is off", "--kv-transfer-config", "{}",
         "--disable-hybrid-kv-cache-manager", id="hybrid-manager-off", level=BLOCK),
    vllm("a key that 0.33 lacks", "--kv-transfer-config", '{"kv_parallel_size":2}',
         version="0.33.0", id="kv-parallel-size-gone", level=BLOCK),
    Case("a Dynamo pair without a connector", "dynamo.vllm",
         {"dynamo.vllm": "1.3.0.post1", "vllm": "0.23.0"}, ("--disaggregation-mode", "decode"),
         "pair-without-transfer", BLOCK),
    Case("role flags of an older Dynamo", "dynamo.vllm",
         {"dynamo.vllm": "1.3.0.post1", "vllm": "0.23.0"}, ("--is-decode-worker",),
         "old-role-flags", WARN),
    Case("a flag of vLLM's HTTP server", "dynamo.vllm",
         {"dynamo.vllm": "1.6.1", "vllm": "0.31.0"}, ("--tool-call-parser", "hermes"),
         "flag-unknown", BLOCK, "a flag of `vllm serve`, not of dynamo.vllm"),
    sglang("a system port beyond 16 bits", *DECODE, env={"DYN_SYSTEM_PORT": "40000"},
           id="system-port-too-high", level=BLOCK, says="DYN_SYSTEM_PORT=40000", does="32767"),
    sglang("a port that two settings name", *DECODE, "--port", "8081",
           env={"DYN_SYSTEM_PORT": "8081"}, id="one-port-twice", level=BLOCK, says="--port 8081"),
    sglang("the highest system port", *DECODE, env={"DYN_SYSTEM_PORT": "32767"}),
]  # fmt: skip


def said(case: Case) -> list[Finding]:
    line = CommandLine(("program", *case.words), case.env, program=1)
    return list(ENGINES[case.engine].check(line, case.versions))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.claim.replace(" ", "-"))
def test_check_says_it(case: Case) -> None:
    found = said(case)
    if not case.id:
        assert found == []
        return
    chosen = [f for f in found if f.id == case.id]
    assert [f.level for f in chosen] == [case.level], [f.id for f in found]
    assert case.says in chosen[0].evidence[0]
    assert case.does in chosen[0].remedy
    assert chosen[0].reason


def test_every_quirk_and_moved_variable_has_a_case() -> None:
    shown = {case.id for case in CASES}
    assert {quirk.id for quirk in QUIRKS} <= shown
    untried = set(MOVED) - {name for case in CASES for name in case.env}
    assert untried <= {"VLLM_SSM_CONV_STATE_LAYOUT", "VLLM_USE_FLASHINFER_MOE_FP4",
                       "VLLM_USE_FLASHINFER_MOE_FP16", "VLLM_FLASHINFER_MOE_BACKEND"}  # fmt: skip


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda q: f"{q.package or 'any'}-{q.id}")
def test_every_quirk_has_a_source_that_resolves(quirk: object) -> None:
    from .test_rules import slug

    file, _, anchor = quirk.source.partition("#")  # type: ignore[attr-defined]
    if not file.startswith("https://"):
        lines = (ROOT / file).read_text().splitlines()
        assert anchor in {slug(line.lstrip("# ")) for line in lines if line.startswith("#")}


def test_what_an_image_answers_wins_over_the_shipped_list() -> None:
    """A fork may have flags that no published version has."""
    line = CommandLine(("p", "--k3-only", "--page-size", "64"), program=1)
    fork = Schema("sglang", "0.5.18", {n: Flag(n) for n in ("--page-size",)}
                  | {"--k3-only": Flag("--k3-only", takes_value=False)})  # fmt: skip
    check = ENGINES["dynamo.sglang"].check
    assert [f.id for f in check(line, K3_IMAGE)] == ["flag-unknown"]
    assert check(line, K3_IMAGE, [fork]) == ()


def test_a_secret_stays_out_of_what_is_said() -> None:
    line = CommandLine(("p", "--api-key", Secret("hunter2")), program=1)
    found = ENGINES["vllm"].check(line, VLLM)
    assert [f.id for f in found] == ["secret-on-command-line"]
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("version", ["", "main"])
def test_an_unknown_version_is_never_called_one_that_lacks_a_flag(version: str) -> None:
    line = CommandLine(("p", *DECODE, "--tp-size", "8"), {"SGLANG_HOST_IP": "10.0.0.4"}, program=1)
    versions = {"dynamo.sglang": "1.6.1", "sglang": version}
    found = ENGINES["dynamo.sglang"].check(line, versions)
    assert [f.id for f in found] == ["version-unknown"]
