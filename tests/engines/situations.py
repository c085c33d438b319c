"""The situations of both field reports, as worlds that rules and engines can look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bringup.core.facts import Facts
from bringup.core.host import Deployment, Host, Image, Login, Mode, Model, Role, Services
from bringup.core.reading import Absent, Known
from bringup.core.rules import Joint, World
from bringup.probes.container import ContainerEngine
from bringup.probes.gpu import Gpu, Gpus
from bringup.probes.infiniband import Hca, InfiniBand, Purpose
from bringup.probes.memory import Memory
from bringup.probes.toolkit import Nvcc

DIGEST = "sha256:" + "3f" * 32


def gpus(name: str, capability: str, memory_mib: int, count: int, driver: str) -> Gpus:
    listed = (
        Gpu(i, name, f"GPU-{i}", compute_capability=capability, memory_mib=memory_mib)
        for i in range(count)
    )
    return Gpus(driver, "13.0", tuple(listed))


def rdma(first: int = 4, *, state: str = "ACTIVE") -> InfiniBand:
    """Four switch bridges and eight compute adapters of 800 Gb/s, GPU order unlike name order."""
    far = ("NODE",) * 8
    bridges = [
        Hca(f"mlx5_{i}", Purpose.BRIDGE, "ACTIVE", "LinkUp", 400.0, levels=far) for i in range(4)
    ]
    names = [f"mlx5_{first + i}" for i in range(8)]
    order = {gpu: names[gpu ^ 1] for gpu in range(8)}
    near = {name: gpu for gpu, name in order.items()}
    compute = [
        Hca(
            name, Purpose.COMPUTE, state, "LinkUp", 800.0,
            levels=tuple("PXB" if gpu == near[name] else "NODE" for gpu in range(8)),
        )
        for name in names
    ]  # fmt: skip
    return InfiniBand((*bridges, *compute), order)


def b300_facts(first: int = 4) -> Facts:
    return Facts(
        {
            Gpus: Known(gpus("NVIDIA B300 SXM6 AC", "10.3", 275040, 8, "580.95.05")),
            Nvcc: Absent("sh: nvcc: not found"),
            InfiniBand: Known(rdma(first)),
            ContainerEngine: Known(ContainerEngine("docker", "27.5.1", ("nvidia", "runc"))),
            Memory: Known(Memory(2_063_000, 1_950_000)),
        }
    )


def b200_facts() -> Facts:
    return Facts(
        {
            Gpus: Known(gpus("NVIDIA B200", "10.0", 183359, 2, "580.95.05")),
            Nvcc: Absent("sh: nvcc: not found"),
            InfiniBand: Absent("no /sys/class/infiniband"),
            ContainerEngine: Absent("docker: not found"),
            Memory: Known(Memory(515_000, 480_000)),
        }
    )


K3 = Deployment(
    name="kimi-k3",
    engine="dynamo.sglang",
    model=Model(
        "kimi-k3-ultrafast", "/raid/models/Kimi-K3", architecture="kimi_k3", weights_gib=1536.0,
        mixture_of_experts=True, hybrid=True, draft_path="/raid/models/Kimi-K3-DSpark",
    ),
    image=Image(
        "dynamo-sglang-k3", "dynamo-sglang-k3:1.3.0.post1", DIGEST, "0.5.18", "1.3.0.post1", "13.0"
    ),
    roles=(
        Role("prefill", Mode.PREFILL, (("b300-04",),), knobs={
            "chunked_prefill_size": 32768, "max_prefill_tokens": 32768,
            "hierarchical_cache": True, "hicache_ratio": 3.0,
        }),
        Role("decode", Mode.DECODE, (("b300-07",),), knobs={
            "speculative_algorithm": "DSPARK", "speculative_block_size": 7,
            "decode_extra_slots": 16,
        }),
    ),
    services=Services(
        ("http://10.0.0.11:2379", "http://10.0.0.12:2379", "http://10.0.0.13:2379"),
        "nats://10.0.0.11:4222", "http://10.0.0.20:8000",
    ),
)  # fmt: skip

QWEN = Model("qwen3.6-27b", "/models/Qwen3.6-27B-NVFP4", architecture="qwen3_6",
             weights_gib=15.0, hybrid=True)  # fmt: skip
GEMMA = Model("gemma-4-26b", "/models/gemma-4-26B-A4B-it-FP8-Dynamic", architecture="gemma4",
              weights_gib=27.0, mixture_of_experts=True)  # fmt: skip
VLLM = Image("vllm-0.24", engine_version="0.24.0")
COMMON = {"memory_fraction": 0.9, "max_model_len": 32768, "trust_remote_code": True}


def alone(name: str, model: Model, **knobs: str | int | float | bool) -> Deployment:
    role = Role("serve", Mode.AGGREGATED, (("b200-01",),))
    return Deployment(
        name, "vllm", model, VLLM, (role,), in_container=False, knobs={**COMMON, **knobs}
    )


DP2 = alone("qwen-dp2", QWEN, data_parallel=2)
TP2 = alone("qwen-tp2", QWEN, tensor_parallel=2)
PD1 = Deployment(
    "qwen-1p1d", "vllm", QWEN, VLLM,
    (
        Role("prefill", Mode.PREFILL, (("b200-01",),), gpus=(0,), knobs={"port": 8100}),
        Role("decode", Mode.DECODE, (("b200-01",),), gpus=(1,), knobs={"port": 8200}),
    ),
    in_container=False, knobs=COMMON,
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A host with its facts."""

    name: str
    address: str
    facts: Facts = field(default_factory=Facts)

    def world(self, deployment: Deployment, role: Role) -> World:
        host = Host(self.name, Login(f"{self.name}.example"), advertise=self.address)
        return World(host, self.facts, None, deployment, role)


PLACES = {
    "b300-04": Place("b300-04", "10.0.0.4", b300_facts()),
    "b300-07": Place("b300-07", "10.0.0.7", b300_facts(first=8)),
    "b200-01": Place("b200-01", "10.0.1.1", b200_facts()),
}


def world(deployment: Deployment, role: str, *facts: tuple[type, object]) -> World:
    """Return the world of a role's first host; `facts` replace what was read there."""
    chosen = next(r for r in deployment.roles if r.name == role)
    made = PLACES[chosen.hosts[0]].world(deployment, chosen)
    readings = {**made.facts.readings, **dict(facts)}
    return replace(made, facts=Facts(readings))  # type: ignore[arg-type]


def joint(deployment: Deployment, *facts: tuple[str, type, object]) -> Joint:
    """Return a deployment with the worlds of its hosts; `facts` are host, type, reading."""
    worlds = {}
    for role in deployment.roles:
        for host in role.hosts:
            made = PLACES[host].world(deployment, role)
            changed = {kind: reading for name, kind, reading in facts if name == host}
            readings = {**made.facts.readings, **changed}
            worlds[host] = replace(made, facts=Facts(readings))  # type: ignore[arg-type]
    return Joint(deployment, worlds)


def role(deployment: Deployment, name: str, **changed: object) -> Deployment:
    """Return a deployment with one role changed; `knobs` add to the role's own."""
    roles = []
    for one in deployment.roles:
        if one.name == name:
            knobs = {**one.knobs, **changed.pop("knobs", {})}  # type: ignore[dict-item]
            one = replace(one, knobs=knobs, **changed)  # type: ignore[arg-type]  # noqa: PLW2901
        roles.append(one)
    return replace(deployment, roles=tuple(roles))


def image(deployment: Deployment, **changed: str) -> Deployment:
    """Return a deployment whose image says something else of itself."""
    return replace(deployment, image=replace(deployment.image, **changed))  # type: ignore[arg-type]


def model(deployment: Deployment, **changed: object) -> Deployment:
    """Return a deployment of a model that differs."""
    return replace(deployment, model=replace(deployment.model, **changed))  # type: ignore[arg-type]
