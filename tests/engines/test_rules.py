"""What rules choose and refuse, and that they choose nothing on what nobody could look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from bringup.core.host import Deployment, Host, Mode, Role, Scalar
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.rules import Finding, Joint, Level, Row, Status, World, judge
from bringup.probes.container import ContainerEngine
from bringup.probes.gpu import Gpus
from bringup.probes.infiniband import InfiniBand
from bringup.probes.inside import Inside
from bringup.probes.memory import Memory
from bringup.probes.packages import PythonPackages
from bringup.probes.toolkit import Nvcc
from bringup.rules import advice, fallbacks
from bringup.rules.deployment import ROWS as JOINT_ROWS
from bringup.rules.engine_network import nics
from tests.conftest import ROOT

from .situations import DP2, GEMMA, K3, PD1, TP2, gpus, image, joint, model, rdma, role, world

B200_PAIR = replace(K3, roles=(replace(K3.roles[0], workers=(("b200-01",),)), K3.roles[1]))
NEW = Known(Nvcc("13.0", "13.0.88", "/usr/local/cuda/bin/nvcc"))
OLD = Known(Nvcc("12.8", "12.8.93", "/usr/local/cuda/bin/nvcc"))
B300 = Known(gpus("NVIDIA B300 SXM6 AC", "10.3", 275040, 2, "580.95.05"))
EIGHT_B200 = Known(gpus("NVIDIA B200", "10.0", 183359, 8, "580.95.05"))
BARE = Known(ContainerEngine("docker", "27.5.1", ("runc",)))
CDI = Known(ContainerEngine("docker", "27.5.1", ("nvidia", "runc"), ("nvidia.com/gpu=0",), "",
                            "systemd"))  # fmt: skip
TRITON: dict[str, Scalar] = {"attention_backend": "triton", "flashinfer_sampler": False}


@dataclass(frozen=True)
class Case:
    """A situation, the row that should speak, and what it should say."""

    claim: str
    deployment: Deployment
    role: str
    row: str
    level: Level | None
    decide: dict[str, Scalar] = field(default_factory=dict)
    says: str = ""
    facts: tuple[tuple[type, object], ...] = ()


NO_NATS = replace(K3, services=replace(K3.services, nats=""))
CASES = [
    Case("a plane over NATS without a server", replace(NO_NATS, knobs={"request_plane": "nats"}),
         "decode", "planes-need-nats", Level.BLOCK, says="request_plane"),
    Case("a plane over NATS by a variable", role(NO_NATS, "decode",
         env={"DYN_EVENT_PLANE": "nats"}), "decode", "planes-need-nats", Level.BLOCK,
         says="event_plane"),
    Case("a plane over NATS with a server", replace(K3, knobs={"request_plane": "nats"}),
         "decode", "planes-need-nats", None),
    Case("planes that need none", NO_NATS, "decode", "planes-need-nats", None),
    Case("a switch's device named for KV",
         role(K3, "decode", knobs={"ucx_net_devices": "mlx5_0:1,mlx5_8:1"}), "decode",
         "devices-by-hand", Level.BLOCK, says="mlx5_0, a switch's management device"),
    Case("a device of the other host", role(K3, "decode", env={"NCCL_IB_HCA": "=mlx5_4"}),
         "decode", "devices-by-hand", Level.BLOCK, says="mlx5_4, which this host lacks"),
    Case("a device that is down", role(K3, "decode", knobs={"ucx_net_devices": "mlx5_8:1"}),
         "decode", "devices-by-hand", Level.BLOCK, says="mlx5_8, which is DOWN",
         facts=((InfiniBand, Known(rdma(8, state="DOWN"))),)),
    Case("good devices named by hand", role(K3, "decode",
         knobs={"ucx_net_devices": "mlx5_8:1,mlx5_9:1", "nccl_ib_hca": "=mlx5_8"}), "decode",
         "devices-by-hand", None),
    Case("devices to leave out", role(K3, "decode", env={"NCCL_IB_HCA": "^mlx5_0"}), "decode",
         "devices-by-hand", None),
    Case("devices of a host that nobody could look at",
         role(K3, "decode", knobs={"ucx_net_devices": "mlx5_0:1"}), "decode", "devices-by-hand",
         None, facts=((InfiniBand, Unknown("timed out")),)),
    Case("UCX kept to TCP", role(K3, "decode", env={"UCX_TLS": "tcp,cuda_copy"}), "decode",
         "rdma-switched-off", Level.BLOCK, says="tcp,cuda_copy"),
    Case("UCX with RDMA", role(K3, "decode", knobs={"ucx_tls": "rc_x,cuda_copy"}), "decode",
         "rdma-switched-off", None),
    Case("UCX with one transport left out", role(K3, "decode", env={"UCX_TLS": "^cuda_ipc"}),
         "decode", "rdma-switched-off", None),
    Case("NCCL kept off InfiniBand", role(K3, "decode", env={"NCCL_IB_DISABLE": "1"}), "decode",
         "rdma-switched-off", Level.BLOCK, says="NCCL_IB_DISABLE"),
    Case("TCP that the operator accepts",
         role(replace(K3, accept_tcp=True), "decode", env={"NCCL_IB_DISABLE": "1"}), "decode",
         "rdma-switched-off", Level.WARN, says="accept_tcp"),
    Case("GPUs by a variable", role(K3, "decode", env={"CUDA_VISIBLE_DEVICES": "0,1"}), "decode",
         "gpus-by-hand", Level.WARN, says="CUDA_VISIBLE_DEVICES=0,1"),
    Case("SGLang's flag on vLLM", role(DP2, "serve", flags={"--tp-size": 2}), "serve",
         "flag-of-another-engine", Level.WARN, says="knob tensor_parallel"),
    Case("vLLM's flag on SGLang", role(K3, "decode", flags={"max-model-len": 4096}), "decode",
         "flag-of-another-engine", Level.WARN, says="knob max_model_len"),
    Case("a flag that both have", role(K3, "decode", flags={"--trust-remote-code": True}),
         "decode", "flag-of-another-engine", None),
    Case("Kimi K3 without its own code", replace(K3, knobs={"trust_remote_code": False}),
         "decode", "kimi-k3-remote-code", Level.BLOCK, says="false"),
    Case("no nvcc beside vLLM chooses Triton", DP2, "serve", "vllm-without-nvcc", Level.WARN,
         TRITON, "not found"),
    Case("unknown nvcc chooses nothing", DP2, "serve", "vllm-without-nvcc", Level.WARN,
         says="no Triton fallback is chosen", facts=((Nvcc, Unknown("timed out")),)),
    Case("nvcc of the host keeps FlashInfer", DP2, "serve", "vllm-without-nvcc", None,
         facts=((Nvcc, NEW),)),
    Case("nvcc 12.8 cannot compile for B300", DP2, "serve", "vllm-without-nvcc", Level.WARN,
         TRITON, "need 12.9", ((Nvcc, OLD), (Gpus, B300))),
    Case("nvcc of the host says nothing of a container",
         replace(DP2, in_container=True), "serve", "vllm-without-nvcc", Level.WARN,
         says="does not say whether nvcc is inside", facts=((Nvcc, NEW),)),
    Case("nvcc seen inside the image counts",
         replace(DP2, in_container=True), "serve", "vllm-without-nvcc", None,
         facts=((Inside, Known(Inside(nvcc=NEW))),)),
    Case("what was seen inside goes over what the image promises",
         image(replace(DP2, in_container=True), nvcc="13.0"), "serve", "vllm-without-nvcc",
         Level.WARN, TRITON, "not in the image",
         ((Inside, Known(Inside(nvcc=Absent("not in the image")))),)),
    Case("prebuilt kernels of one version on the host are kept", DP2, "serve",
         "vllm-without-nvcc", Level.OK, says="are all 0.6.12",
         facts=((PythonPackages, Known(PythonPackages({
             "torch": "2.11.0", "flashinfer-python": "0.6.12", "flashinfer-cubin": "0.6.12",
             "flashinfer-jit-cache": "0.6.12+cu130"}))),)),
    Case("cubins alone do not replace the compiler", DP2, "serve", "vllm-without-nvcc",
         Level.WARN, TRITON, facts=((PythonPackages, Known(PythonPackages({
             "torch": "2.11.0", "flashinfer-python": "0.6.12",
             "flashinfer-cubin": "0.6.12"}))),)),
    Case("an image without nvcc chooses Triton though the host has one",
         image(replace(DP2, in_container=True), nvcc="none"), "serve", "vllm-without-nvcc",
         Level.WARN, TRITON, "states nvcc: none", ((Nvcc, NEW),)),
    Case("prebuilt FlashInfer kernels are kept", image(DP2, flashinfer="prebuilt"), "serve",
         "vllm-without-nvcc", Level.OK, says="prebuilt"),
    Case("FP8 experts get Triton", replace(TP2, model=GEMMA), "serve", "vllm-without-nvcc",
         Level.WARN, {**TRITON, "moe_backend": "triton"}),
    Case("SGLang without nvcc gets its own set",
         model(image(K3, nvcc="none"), architecture=""), "decode", "sglang-without-nvcc",
         Level.WARN, {**TRITON, "linear_backend": "triton", "mamba_backend": "triton"}),
    Case("Kimi K3 has no Triton fallback", image(K3, nvcc="none"), "decode",
         "kimi-k3-needs-nvcc", Level.BLOCK, says="states nvcc: none"),
    Case("Kimi K3 asks when nobody said", image(K3, nvcc=""), "decode", "kimi-k3-needs-nvcc",
         Level.BLOCK, says="does not say"),
    Case("two copies compile at once", DP2, "serve", "data-parallel-start-compiles-twice",
         Level.OK, {"ready_timeout_s": 1800}),
    Case("Kimi K3 may take an hour", K3, "prefill", "large-model-slow-start", Level.OK,
         {"ready_timeout_s": 3600}),
    Case("hybrid model over NIXL needs layout DS", PD1, "decode", "hybrid-nixl-layout", Level.OK,
         {"conv_state_layout": "DS"}),
    Case("layout DS is not in vLLM 0.19", image(PD1, engine_version="0.19.0"), "decode",
         "hybrid-nixl-layout", Level.BLOCK, says="first in 0.20.0"),
    Case("a plain server needs no layout", TP2, "serve", "hybrid-nixl-layout", None),
    Case("devices in GPU order without bridges", K3, "prefill", "rdma-device-list", Level.OK,
         {"nccl_ib_hca": "=mlx5_5,mlx5_4,mlx5_7,mlx5_6,mlx5_9,mlx5_8,mlx5_11,mlx5_10"},
         "switch bridges left out: mlx5_0"),
    Case("unknown devices block a pair of hosts", K3, "prefill", "rdma-device-list", Level.BLOCK,
         says="permission denied", facts=((InfiniBand, Unknown("permission denied")),)),
    Case("one host needs no device list", PD1, "prefill", "rdma-device-list", None),
    Case("a pair on one host has ports apart", PD1, "decode", "pair-on-one-host", Level.OK,
         {"port": 8200, "side_channel_port": 5608}),
    Case("a worker leaves the router's port free",
         replace(PD1, roles=(replace(PD1.roles[0], knobs={}),
                             replace(PD1.roles[1], workers=(("b300-07",),)))),
         "prefill", "pair-on-one-host", Level.OK, {"port": 8100}, "prefill and vllm-router"),
    Case("more copies than eight push side channels further apart",
         role(PD1, "prefill", knobs={"data_parallel": 16}), "decode", "pair-on-one-host",
         Level.OK, {"side_channel_port": 5616}),
    Case("UCX pinned to RDMA on one host is refused",
         role(PD1, "decode", knobs={"ucx_tls": "rc,cuda_copy"}), "decode", "pair-on-one-host",
         Level.BLOCK, says="cuda_ipc"),
    Case("UCX pinned by a variable is refused as well",
         role(PD1, "decode", env={"UCX_TLS": "rc,cuda_copy"}), "decode", "pair-on-one-host",
         Level.BLOCK, says="cuda_ipc"),
    Case("a flag that a knob spells passes rules by",
         role(DP2, "serve", flags={"data-parallel-size": 2}), "serve", "knob-by-hand",
         Level.WARN, says="--data-parallel-size of role serve is knob data_parallel"),
    Case("a flag of no knob is fine", role(DP2, "serve", flags={"enable-metrics": None}), "serve",
         "knob-by-hand", None),
    Case("a device list of two hosts is refused on one",
         role(PD1, "decode", knobs={"ucx_net_devices": "mlx5_0:1"}), "decode",
         "pair-on-one-host", Level.BLOCK, says="mlx5_0:1"),
    Case("weights that fit are told with figures", K3, "decode", "model-fits", Level.OK,
         says="1934 GiB usable"),
    Case("Kimi K3 does not fit one B200 host", K3, "decode", "model-fits", Level.BLOCK,
         says="1289 GiB usable", facts=((Gpus, EIGHT_B200),)),
    Case("two B200 hosts hold Kimi K3",
         replace(K3, roles=(replace(K3.roles[0], workers=(("b300-04", "b300-07"),)),)),
         "prefill", "model-fits", Level.OK, says="16 GPUs", facts=((Gpus, EIGHT_B200),)),
    Case("copies share the memory", model(DP2, weights_gib=200.0), "serve", "model-fits",
         Level.BLOCK, says="2 copies"),
    Case("GPUs that nobody could count block", K3, "decode", "model-fits", Level.BLOCK,
         says="GPUs unknown", facts=((Gpus, Unknown("nvidia-smi timed out")),)),
    Case("more GPUs than there are", role(TP2, "serve", knobs={"tensor_parallel": 4}), "serve",
         "gpu-count", Level.BLOCK, says="needs 4 GPUs; the worker has 2"),
    Case("a GPU that is not there", role(PD1, "decode", gpus=(7,)), "decode", "gpu-count",
         Level.BLOCK, says="takes GPU 7"),
    Case("mixture of experts in copies on 0.24", replace(DP2, model=GEMMA), "serve",
         "moe-data-parallel", Level.BLOCK, says="vLLM 0.24.0"),
    Case("mixture of experts in copies elsewhere is untried",
         replace(image(DP2, engine_version="0.33.0"), model=GEMMA), "serve", "moe-data-parallel",
         Level.NOTE, says="nobody has reported"),
    Case("Kimi K3 needs SGLang 0.5.17", image(K3, engine_version="0.5.15.post1"), "decode",
         "kimi-k3-engine-version", Level.BLOCK, says="0.5.17 and later"),
    Case("Kimi K3 needs vLLM 0.27",
         replace(image(K3, engine_version="0.24.0"), engine="vllm"), "decode",
         "kimi-k3-engine-version", Level.BLOCK, says="0.27.0 and later"),
    Case("an image that tells no version is asked", image(K3, engine_version=""), "decode",
         "kimi-k3-engine-version", Level.BLOCK, says="nobody said"),
    Case("B200 hosts get the public recipe", K3, "decode", "kimi-k3-on-b200", Level.OK,
         {"watchdog_timeout_s": 3600, "flashinfer_autotune": False},
         facts=((Gpus, EIGHT_B200),)),
    Case("Dynamo 1.3 breaks on SGLang 0.5.19", image(K3, engine_version="0.5.21"), "decode",
         "dynamo-sglang-versions", Level.BLOCK, says="Dynamo 1.3.0.post1 with SGLang 0.5.21"),
    Case("Dynamo 1.6 breaks on SGLang 0.5.18", image(K3, dynamo_version="1.6.1"), "decode",
         "dynamo-sglang-versions", Level.BLOCK),
    Case("Dynamo 1.5 is not tried", image(K3, dynamo_version="1.5.0"), "decode",
         "dynamo-sglang-versions", Level.WARN, says="nobody has tried"),
    Case("Dynamo 1.3.0 does not exist", image(K3, dynamo_version="1.3.0"), "decode",
         "dynamo-version-published", Level.BLOCK),
    Case("the draft of the deployment is used", K3, "decode", "dspark-draft", Level.OK,
         {"speculative_draft_path": "/raid/models/Kimi-K3-DSpark"}),
    Case("DSPARK without a draft is refused", model(K3, draft_path=""), "decode", "dspark-draft",
         Level.BLOCK),
    Case("DSPARK checks block and one token",
         role(K3, "decode", knobs={"speculative_draft_tokens": 7}), "decode", "dspark-sizes",
         Level.BLOCK),
    Case("the report's draft window is left out",
         role(K3, "decode", knobs={"speculative_draft_window": 4096}), "decode",
         "dspark-draft-window", Level.NOTE, says="left out"),
    Case("hierarchical cache on decode is refused",
         role(K3, "decode", knobs={"hierarchical_cache": True}), "decode",
         "hierarchical-cache-on-decode", Level.BLOCK),
    Case("hierarchical cache for all is left out of decode",
         replace(K3, knobs={"hierarchical_cache": True}), "decode",
         "hierarchical-cache-on-decode", Level.NOTE),
    Case("host memory holds the cache of the report", K3, "prefill",
         "hierarchical-cache-memory", Level.OK, says="3 × 398 GiB"),
    Case("less host memory gives a smaller cache", K3, "prefill", "hierarchical-cache-memory",
         Level.WARN, {"hicache_size_gb": 105},
         facts=((Memory, Known(Memory(1_100_000, 1_015_000))),)),
    Case("unknown host memory chooses nothing", K3, "prefill", "hierarchical-cache-memory",
         Level.WARN, says="not checked", facts=((Memory, Unknown("cut off")),)),
    Case("docker without a way to GPUs is refused", K3, "decode", "container-engine",
         Level.BLOCK, says="no CDI device", facts=((ContainerEngine, BARE),)),
    Case("systemd cgroups prefer CDI", K3, "decode", "container-engine", Level.OK,
         {"gpu_access": "cdi"}, "daemon-reload", ((ContainerEngine, CDI),)),
    Case("an unknown engine blocks", K3, "decode", "container-engine", Level.BLOCK,
         facts=((ContainerEngine, Unknown("permission denied")),)),
    Case("privileged shows all GPUs",
         replace(role(K3, "decode", gpus=(0, 1)), knobs={"privileges": "privileged"}), "decode",
         "gpu-subset-privileged", Level.BLOCK),
    Case("no etcd, no registration", replace(K3, services=replace(K3.services, etcd=())),
         "decode", "discovery", Level.BLOCK),
    Case("NATS is optional", K3, "decode", "nats-not-needed", Level.NOTE),
    Case("old frontends refuse kimi_k3", K3, "decode", "kimi-k3-tokenizer", Level.WARN,
         says="1.5.0"),
    Case("a device list for two hosts is refused",
         replace(K3, knobs={"ucx_net_devices": "mlx5_0:1"}), "decode", "per-host-values",
         Level.BLOCK, says="sets ucx_net_devices"),
    Case("a pool's limit reaches the engine", role(K3, "decode", max_context=262144), "decode",
         "pool-context", Level.OK, {"max_model_len": 262144}),
    Case("DSPARK without a batch limit is told of 48", K3, "decode", "dspark-batch", Level.NOTE,
         says="not set"),
    Case("a batch limit is respected", role(K3, "decode", knobs={"max_running_requests": 96}),
         "decode", "dspark-batch", None),
    Case("one attention knob of Kimi K3 cancels the others",
         role(K3, "decode", knobs={"decode_attention_backend": "cutedsl_mla"}), "decode",
         "kimi-k3-attention", Level.NOTE, says="decode_attention_backend = cutedsl_mla"),
    Case("Kimi K3 ignores symmetric memory",
         role(K3, "decode", flags={"enable-symm-mem": None}), "decode",
         "kimi-k3-symmetric-memory", Level.NOTE),
    Case("Kimi K3 in a vLLM pair may answer wrongly",
         image(replace(K3, engine="vllm"), engine_version="0.33.0"), "decode",
         "kimi-k3-vllm-pair", Level.WARN),
    Case("two decode pools on one host have ports apart",
         replace(K3, roles=(K3.roles[0],
                            Role("short", Mode.DECODE, (("b300-07",),), gpus=(0, 1)),
                            Role("long", Mode.DECODE, (("b300-07",),), gpus=(2, 3)))),
         "long", "pair-on-one-host", Level.OK, {"port": 8200, "system_port": 8082}),
    Case("few GPUs and a small model favour copies", PD1, "decode", "pair-on-few-gpus",
         Level.NOTE, says="fit one GPU"),
]  # fmt: skip


def finding(rows: tuple[Row[World], ...], id_: str, seen: World) -> Finding | None:
    return next((f for f in judge(rows, seen) if f.id == id_), None)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.claim.replace(" ", "-"))
def test_rule_sees_the_situation(case: Case) -> None:
    rows = (*fallbacks.ROWS, *advice.ROWS)
    found = finding(rows, case.row, world(case.deployment, case.role, *case.facts))
    assert (found.level if found else None) == case.level
    if found is None:
        return
    assert case.decide.items() <= found.decide.items()
    assert case.decide or not found.decide or found.level is Level.OK
    assert case.says in " ".join(found.evidence)
    assert found.level is Level.OK or found.remedy or found.level is Level.NOTE


@pytest.mark.parametrize("row", fallbacks.ROWS, ids=lambda r: r.id)
def test_no_rule_chooses_on_unknown_facts(row: Row[World]) -> None:
    """A fallback that needs a fact never fires on an answer that nobody got."""
    kinds = (Gpus, Nvcc, InfiniBand, ContainerEngine, Memory)
    blind = tuple((kind, Unknown("not asked")) for kind in kinds)
    by_fact = {"rdma-device-list", "container-engine", "hierarchical-cache-memory",
               "kimi-k3-on-b200", "vllm-without-nvcc", "blackwell-first-start"}  # fmt: skip
    for deployment in (K3, DP2, TP2, PD1):
        for one in deployment.roles:
            found = finding((row,), row.id, world(deployment, one.name, *blind))
            assert not (row.id in by_fact and found and found.decide)


def test_a_host_with_a_word_of_its_own_is_announced_by_it() -> None:
    seen = world(K3, "decode")
    loop = replace(seen, host=replace(seen.host, advertise="127.0.0.1"))
    found = finding(fallbacks.ROWS, "announced-address", loop)
    assert found is not None
    assert found.level is Level.BLOCK


def test_inactive_devices_are_left_out_and_told() -> None:
    seen = rdma()
    down = tuple(replace(d, state="DOWN") if d.name == "mlx5_4" else d for d in seen.devices)
    part = InfiniBand(down, seen.nearest)
    found = finding(
        fallbacks.ROWS, "rdma-device-list", world(K3, "prefill", (InfiniBand, Known(part)))
    )
    assert found is not None
    assert found.level is Level.WARN
    assert "mlx5_4:1" not in str(found.decide["ucx_net_devices"])
    assert "not active, left out: mlx5_4" in found.evidence


def test_without_distances_all_active_compute_devices_are_listed() -> None:
    assert [d.name for d in nics(InfiniBand(rdma().devices), (0, 1))] == [
        f"mlx5_{i}" for i in range(4, 12)
    ]


ONE_HOST_TWICE = replace(PD1, roles=tuple(replace(r, gpus=()) for r in PD1.roles))
JOINT_CASES: list[tuple[str, Joint, str, Level | None, str]] = [
    ("RDMA on both sides", joint(K3), "rdma-between-pair", Level.OK, "b300-04 b300-07"),
    ("no RDMA blocks", joint(K3, ("b300-07", InfiniBand, Absent("no devices"))),
     "rdma-between-pair", Level.BLOCK, "b300-07: no RDMA device"),
    ("inactive RDMA blocks", joint(K3, ("b300-07", InfiniBand, Known(rdma(state="DOWN")))),
     "rdma-between-pair", Level.BLOCK, "no active compute device"),
    ("unknown RDMA blocks", joint(K3, ("b300-07", InfiniBand, Unknown("timed out"))),
     "rdma-between-pair", Level.BLOCK, "timed out"),
    ("TCP by the operator's word",
     joint(replace(K3, accept_tcp=True), ("b300-07", InfiniBand, Absent("no devices"))),
     "rdma-between-pair", Level.WARN, "accept_tcp: true"),
    ("one host needs none", joint(PD1), "rdma-between-pair", None, ""),
    ("prefill alone", joint(replace(K3, roles=K3.roles[:1])), "pair-complete", Level.BLOCK,
     "prefill workers only"),
    ("page size of one role", joint(role(K3, "decode", knobs={"page_size": 64})), "pair-agrees",
     Level.BLOCK, "prefill on b300-04 says nothing, decode on b300-07 says 64"),
    ("page size of both",
     joint(replace(K3, knobs={"page_size": 64})), "pair-agrees", None, ""),
    ("served name by a flag", joint(role(K3, "decode", flags={"served-model-name": "other"})),
     "pair-agrees", Level.BLOCK, "--served-model-name"),
    ("namespace by a variable", joint(role(K3, "decode", env={"DYN_NAMESPACE": "other"})),
     "pair-agrees", Level.BLOCK, "DYN_NAMESPACE"),
    ("a draft on one side of a vLLM pair",
     joint(role(PD1, "decode", knobs={"speculative_config": "{}"})), "pair-speculation",
     Level.BLOCK, "decode speculates, prefill does not"),
    ("a draft on one side of a Dynamo pair", joint(K3), "pair-speculation", None, ""),
    ("a shorter context on decode", joint(role(K3, "decode", knobs={"max_model_len": 131072})),
     "pair-context", Level.WARN, "decode says 131072"),
    ("a decode pool with a limit of its own",
     joint(role(K3, "decode", knobs={"max_model_len": 131072}, max_context=131072)),
     "pair-context", None, ""),
    ("two givers of KV", joint(role(PD1, "decode", knobs={"kv_role": "kv_producer"})),
     "pair-transfer-roles", Level.BLOCK, "kv_role: kv_producer"),
    ("both sides give and take", joint(replace(PD1, knobs={"kv_role": "kv_both"})),
     "pair-transfer-roles", None, ""),
    ("a hybrid model cut in two ways",
     joint(role(K3, "decode", knobs={"tensor_parallel": 4})), "pair-parallel", Level.WARN,
     "decode on b300-07 says 4"),
    ("a model without state cut in two ways",
     joint(model(role(K3, "decode", knobs={"tensor_parallel": 4}), hybrid=False)),
     "pair-parallel", None, ""),
    ("one GPU for two roles", joint(ONE_HOST_TWICE), "gpus-apart", Level.BLOCK,
     "both take GPUs all"),
    ("two SGLang prefill workers on one host",
     joint(replace(K3, roles=(K3.roles[1],
                              Role("a", Mode.PREFILL, (("b300-04",),), gpus=(0, 1)),
                              Role("b", Mode.PREFILL, (("b300-04",),), gpus=(2, 3))))),
     "bootstrap-apart", Level.BLOCK, "b300-04: a and b"),
    ("one SGLang prefill worker on a host", joint(K3), "bootstrap-apart", None, ""),
    ("one port for two roles", joint(replace(PD1, knobs={"rpc_port": 9000})), "ports-apart",
     Level.BLOCK, "rpc_port = 9000"),
    ("side channels closer than copies",
     joint(role(role(PD1, "prefill", knobs={"side_channel_port": 5600, "data_parallel": 2}),
                "decode", knobs={"side_channel_port": 5601})),
     "ports-apart", Level.BLOCK, "less than 2 apart"),
    ("unlike hosts in one worker",
     joint(replace(K3, roles=(Role("serve", Mode.AGGREGATED, (("b300-04", "b200-01"),)),))),
     "worker-hosts-alike", Level.BLOCK, "2 × NVIDIA B200"),
    ("two decode pools without lengths",
     joint(replace(K3, roles=(*K3.roles, Role("decode-long", Mode.DECODE, (("b200-01",),))))),
     "decode-pools", Level.NOTE, "no max_context"),
]  # fmt: skip


@pytest.mark.parametrize("case", JOINT_CASES, ids=lambda c: c[0].replace(" ", "-"))
def test_rule_across_hosts_sees_the_situation(
    case: tuple[str, Joint, str, Level | None, str],
) -> None:
    _, whole, id_, level, says = case
    found = next((f for f in judge(JOINT_ROWS, whole) if f.id == id_), None)
    assert (found.level if found else None) == level
    assert says in " ".join(found.evidence if found else ())


EVERY: tuple[Row[World] | Row[Joint], ...] = (*fallbacks.ROWS, *advice.ROWS, *JOINT_ROWS)


@pytest.mark.parametrize("row", EVERY, ids=lambda r: r.id)
def test_every_rule_has_a_reason_and_a_source_that_resolves(
    row: Row[World] | Row[Joint],
) -> None:
    assert row.reason
    assert row.source
    file, _, anchor = row.source.partition("#")
    if not file.startswith("https://"):
        text = (ROOT / file).read_text()
        heads = {slug(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")}
        assert anchor in heads


def slug(title: str) -> str:
    """Return the anchor that a heading gets."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


def test_rule_names_are_unique() -> None:
    names = [row.id for row in EVERY]
    assert sorted(set(names)) == sorted(names)


def test_rules_say_nothing_of_a_host_without_a_deployment() -> None:
    seen = replace(world(K3, "decode"), deployment=None, role=None)
    assert judge((*fallbacks.ROWS, *advice.ROWS), seen) == ()


def test_status_unknown_is_never_a_pass() -> None:
    found = judge(fallbacks.ROWS, world(image(K3, nvcc="", engine_version=""), "decode"))
    assert all(f.level is not Level.OK for f in found if f.status is Status.UNKNOWN)


def test_hosts_have_their_own_word() -> None:
    """A value under one host in the inventory is that host's alone."""
    seen = world(K3, "decode")
    host: Host = replace(seen.host, knobs={"speculative_draft_path": "/elsewhere"})
    found = finding(fallbacks.ROWS, "dspark-draft", replace(seen, host=host))
    assert found is None
