"""What the checks of network, containers, storage, system and Slurm say of known situations."""

# ruff: noqa: E501 - one row a situation

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.host import Host, Login
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.rules import World
from bringup.probes.cdi import CdiSpec, CdiSpecs, DeviceLinks
from bringup.probes.container import (
    ContainerEngine,
    ContainerToolkit,
    DaemonConfig,
    EngineDisk,
)
from bringup.probes.containers import Container, Containers
from bringup.probes.driver import Driver
from bringup.probes.hca import InfiniBand, Purpose
from bringup.probes.identity import Identity
from bringup.probes.inside import Inside
from bringup.probes.kernel import Boot, Modules
from bringup.probes.memory import Memory, MemoryErrors, SharedMemory
from bringup.probes.model import ModelConfig, ModelFolder, ReadSpeed
from bringup.probes.network import Addresses, Listener, Listeners, Names, Reach
from bringup.probes.rdma import AccessControl, LaterLinkCounters, LinkCounters, RdmaNodes
from bringup.probes.services import Etcd, EtcdMember, Nats
from bringup.probes.slurm import GpuOwner, GpuOwners, Job, Slurm, SlurmNode, SshDevices
from bringup.probes.slurm_hooks import Danger, SlurmHooks
from bringup.probes.storage import Array, Arrays, Disk, Disks, Mount, Mounts
from bringup.probes.stored_image import StoredImage
from bringup.probes.system import Kernels, Limits, Processors, Stuck

from .situations import B300, EIGHT, PAIR, finding, nic, world

RDMA = InfiniBand((nic("mlx5_0", levels=("PXB",)),), {0: "mlx5_0"}, {0: ("mlx5_0",)}, ("x",))
DOWN = InfiniBand((nic("mlx5_0", "DOWN", physical="Polling", rate_gb_s=10.0),))
HALF = InfiniBand((nic("mlx5_4"), nic("mlx5_7", "INIT", sm_lid=0)))
SWITCHES = InfiniBand((replace(nic("mlx5_0"), purpose=Purpose.BRIDGE),))
FAR = InfiniBand((nic("mlx5_0", levels=("SYS",)),), {0: "mlx5_0"}, {0: ("mlx5_0",)})
SLOW = InfiniBand((nic("mlx5_0", rate_gb_s=400.0, levels=("PXB",)),), {}, {0: ("mlx5_0",)})
ROCE = InfiniBand((nic("mlx5_0", link_layer="Ethernet", gid="RoCE v2", mtu=1500),))
BARE_ROCE = InfiniBand((nic("mlx5_0", link_layer="Ethernet"),))
CPU = Identity("h", "ubuntu", "24.04", "Ubuntu 24.04 LTS", "6.8.0-90-generic", virtual=False)
OLD = replace(CPU, kernel="5.4.0-200-generic")
VIRTUAL = replace(CPU, virtual=True)
OPEN = Driver(loaded=Known("580.95.05"), is_open=True)
CLOSED = replace(OPEN, is_open=False)
NO_RDMA = {InfiniBand: Absent("no folder /sys/class/infiniband")}
MLX = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs")
CLEAN = LinkCounters(7200.0, {"mlx5_0": {"symbol_error": 0, "link_downed": 0}})

NETWORK_CARDS = [
    ("IB-01", world(RDMA), "pass ok"),
    ("IB-01", world(RDMA, EIGHT, kind=B300), "warn warn"),
    ("IB-01", world(SWITCHES), "fail warn"),
    ("IB-01", world(absent=NO_RDMA), "skip ok"),
    ("IB-02", world(RDMA), "pass ok"),
    ("IB-02", world(DOWN), "fail warn"),
    ("IB-02", world(HALF), "fail warn"),
    ("IB-03", world(RDMA, kind=B300), "pass ok"),
    ("IB-03", world(SLOW, kind=B300), "warn warn"),
    ("IB-03", world(DOWN, kind=B300), "skip ok"),
    ("IB-03", world(InfiniBand((nic("a"), nic("b", rate_gb_s=400.0)))), "warn warn"),
    ("IB-04", world(RDMA, RdmaNodes(("rdma_cm", "uverbs0"))), "pass ok"),
    ("IB-04", world(RDMA, RdmaNodes(("rdma_cm", "uverbs0")), kind=B300), "warn warn"),
    ("IB-04", world(RDMA, RdmaNodes(("umad0",))), "fail warn"),
    ("IB-04", world(RDMA, absent={RdmaNodes: Absent("no folder")}), "fail warn"),
    ("IB-05", world(RDMA, Modules(MLX)), "pass ok"),
    ("IB-05", world(Modules(("mlx5_core",)), absent=NO_RDMA), "fail warn"),
    ("IB-05", world(Modules(("e1000",)), absent=NO_RDMA), "skip ok"),
    ("IB-06", world(InfiniBand((nic("a", firmware="28.1"), nic("b", firmware="28.1")))), "pass ok"),
    ("IB-06", world(InfiniBand((nic("a", firmware="28.1"), nic("b", firmware="28.2")))), "warn note"),
    ("IB-07", world(RDMA, CLEAN, LaterLinkCounters(7202.0, CLEAN.by_device)), "pass ok"),
    ("IB-07", world(RDMA, LinkCounters(3600.0, {"mlx5_0": {"symbol_error": 500}})), "fail warn"),
    (
        "IB-07",
        world(RDMA, CLEAN, LaterLinkCounters(7201.0, {"mlx5_0": {"symbol_error": 50}})),
        "warn warn",
    ),
    (
        "IB-07",
        world(RDMA, CLEAN, LaterLinkCounters(7201.0, {"mlx5_0": {"link_downed": 1}})),
        "fail warn",
    ),
    ("IB-08", world(RDMA, CLEAN), "pass ok"),
    ("IB-08", world(RDMA, LinkCounters(7200.0, {"mlx5_0": {"link_downed": 9}})), "fail warn"),
    ("IB-08", world(RDMA, LinkCounters(864000.0, {"mlx5_0": {"link_downed": 9}})), "pass ok"),
    ("IB-09", world(RDMA, OPEN, CPU), "pass ok"),
    ("IB-09", world(RDMA, CLOSED, CPU, Modules(("nvidia_peermem",))), "warn note"),
    ("IB-09", world(RDMA, CLOSED, CPU, Modules(("nvidia",))), "fail warn"),
    ("IB-09", world(RDMA, OPEN, OLD, Modules(("nvidia",))), "fail warn"),
    ("IB-09", world(RDMA, OPEN), "unknown note"),
    ("IB-10", world(RDMA, CPU, AccessControl((), 12)), "pass ok"),
    ("IB-10", world(RDMA, CPU, AccessControl(("0000:15:01.0",), 12)), "fail warn"),
    ("IB-10", world(RDMA, VIRTUAL, AccessControl(("0000:15:01.0",), 12)), "skip ok"),
    ("IB-10", world(RDMA, CPU, Boot(("intel_iommu=on",), has_iommu=True)), "warn note"),
    ("IB-11", world(RDMA), "pass ok"),
    ("IB-11", world(FAR), "fail warn"),
    ("IB-11", world(FAR, VIRTUAL), "fail note"),
    ("IB-11", world(HALF), "unknown note"),
    ("IB-12", world(RDMA, Inside(container="c", rdma=Known(("mlx5_0",)))), "warn note"),
    ("IB-12", world(RDMA, Inside(container="c", rdma=Known(()))), "fail warn"),
    ("IB-12", world(RDMA, Inside(container="c", rdma_nodes=Absent("ls: …"))), "fail warn"),
    ("IB-12", world(RDMA, Inside(ucx_transports=("tcp", "cuda_copy"))), "fail warn"),
    ("IB-12", world(RDMA, Inside(ucx_transports=("rc_mlx5", "cuda_copy"))), "pass ok"),
    ("IB-12", world(DOWN, Inside(rdma=Known(()))), "skip ok"),
    ("IB-13", world(Inside(packages={"nixl-cu13": "1.0.1"})), "pass ok"),
    ("IB-13", world(Inside(packages={"nixl": "0.10.0"})), "fail warn"),
    ("IB-14", world(RDMA), "skip ok"),
    ("IB-14", world(ROCE), "warn warn"),
    ("IB-14", world(BARE_ROCE), "fail warn"),
    ("IB-16", world(RDMA, pair=True), "pass ok"),
    ("IB-16", world(absent=NO_RDMA, pair=True), "fail warn"),
    ("IB-16", world(absent=NO_RDMA, pair=True, deployment=replace(PAIR, accept_tcp=True)), "warn warn"),
    ("IB-16", world(absent=NO_RDMA, kind=B300), "warn warn"),
    ("IB-16", world(absent=NO_RDMA), "warn note"),
    ("IB-16", world(DOWN, pair=True), "fail warn"),
]  # fmt: skip

DOCKER = ContainerEngine(
    "docker", "29.2.1", ("runc",), (), "/var/lib/docker", "systemd", "2", "json-file"
)
NVIDIA = replace(DOCKER, runtimes=("nvidia", "runc"))
VENV = replace(PAIR, in_container=False)
SPEC = CdiSpecs((CdiSpec("/etc/cdi/nvidia.yaml", "580.95.05", ("all",)),))
OTHER = replace(OPEN, loaded=Known("610.43.02"))
OURS = {"bringup.config": "sha256:1"}
REFUSED = {ContainerEngine: Unknown("permission denied", "permission denied while …")}
STOPPED = {ContainerEngine: Unknown("Cannot connect to the Docker daemon at unix://…")}
IMAGE = StoredImage("sha256:" + "a" * 64, ("k3:1",), (), 30 * 1024**3)

CONTAINERS = [
    ("CTR-01", world(DOCKER), "pass ok"),
    ("CTR-01", world(replace(DOCKER, version="19.3.1")), "warn warn"),
    ("CTR-01", world(absent={ContainerEngine: Absent("docker, podman: not found")}), "fail note"),
    ("CTR-01", world(absent={ContainerEngine: Absent("none")}, pair=True), "fail block"),
    ("CTR-01", world(absent={ContainerEngine: Absent("none")}, pair=True, deployment=VENV), "skip ok"),
    ("CTR-01", world(absent=REFUSED), "fail warn"),
    ("CTR-01", world(absent=REFUSED, pair=True), "fail block"),
    ("CTR-01", world(absent=STOPPED, pair=True), "fail block"),
    ("CTR-01", world(absent={ContainerEngine: Unknown("timed out")}, pair=True), "unknown block"),
    ("CTR-02", world(DOCKER, ContainerToolkit("1.18.0")), "pass ok"),
    ("CTR-02", world(DOCKER, ContainerToolkit("1.17.9")), "warn warn"),
    ("CTR-02", world(DOCKER, ContainerToolkit("1.17.5")), "fail warn"),
    ("CTR-02", world(DOCKER, absent={ContainerToolkit: Absent("not found")}), "fail warn"),
    ("CTR-03", world(DOCKER, EIGHT), "fail block"),
    ("CTR-03", world(NVIDIA), "pass ok"),
    ("CTR-03", world(replace(DOCKER, cdi_devices=("nvidia.com/gpu=0",))), "pass ok"),
    ("CTR-03", world(DOCKER, SPEC, OPEN), "pass ok"),
    ("CTR-03", world(DOCKER, SPEC, OTHER), "warn warn"),
    ("CTR-03", world(absent={ContainerEngine: Absent("none")}), "skip ok"),
    ("CTR-04", world(EIGHT, Inside(container="c", gpus=Known(8))), "pass ok"),
    ("CTR-04", world(EIGHT, Inside(container="c", gpus=Known(0, "Unknown Error"))), "fail warn"),
    ("CTR-04", world(EIGHT, Inside(container="c", gpus=Known(7))), "fail warn"),
    ("CTR-04", world(EIGHT, absent={Inside: Absent("no such container")}), "skip ok"),
    ("CTR-05", world(DOCKER, DeviceLinks(0), Inside(container="c", gpu_request="gpus")), "warn warn"),
    ("CTR-05", world(DOCKER, DeviceLinks(12), Inside(container="c", gpu_request="gpus")), "pass ok"),
    ("CTR-05", world(DOCKER, Inside(container="c", gpu_request="cdi")), "pass ok"),
    ("CTR-05", world(DOCKER, Containers((Container("c", state="running", gpu_request="gpus"),))), "warn warn"),
    ("CTR-05", world(replace(DOCKER, cgroup_driver="cgroupfs")), "pass ok"),
    ("CTR-06", world(IMAGE, pair=True), "pass ok"),
    ("CTR-06", world(replace(IMAGE, id="sha256:" + "b" * 64), pair=True), "fail warn"),
    ("CTR-06", world(absent={StoredImage: Absent("no such image")}, pair=True), "warn note"),
    ("CTR-07", world(EngineDisk("/d", 999_999, 500_000)), "pass ok"),
    ("CTR-07", world(EngineDisk("/d", 999_999, 50_000)), "warn note"),
    ("CTR-07", world(EngineDisk("/d", 999_999, 5_000)), "fail warn"),
    ("CTR-07", world(EngineDisk("/d", 999_999, 5_000), IMAGE), "pass ok"),
    ("CTR-08", world(Containers(()), pair=True), "pass ok"),
    ("CTR-08", world(Containers((Container("x", state="running", ports=(8000,)),)), pair=True,
                     deployment=replace(PAIR, knobs={"port": 8000})), "fail block"),
    ("CTR-09", world(DOCKER, DaemonConfig("", {"max-size": "100m"})), "pass ok"),
    ("CTR-09", world(DOCKER, absent={DaemonConfig: Absent("no file")}), "warn note"),
]  # fmt: skip

PATH = "/raid/models/K3"
WHOLE = ModelFolder(
    PATH, PATH,
    {"a.safetensors": 2000, "config.json": 9, "tiktoken.model": 9, "tokenizer_config.json": 9,
     "generation_config.json": 9},
    ("a.safetensors",), 1900,
)  # fmt: skip
LOCAL = Mounts((Mount("/", "ext4"),))
REMOTE = Mounts((Mount("/", "ext4"), Mount("/raid", "nfs4")))


def without(name: str) -> ModelFolder:
    return replace(WHOLE, files={n: s for n, s in WHOLE.files.items() if n != name})


STORAGE = [
    ("STO-01", world(WHOLE, LOCAL, pair=True), "pass ok"),
    ("STO-01", world(WHOLE, REMOTE, pair=True), "warn warn"),
    ("STO-01", world(LOCAL, absent={ModelFolder: Unknown("timed out")}, pair=True), "fail block"),
    ("STO-01", world(LOCAL, absent={ModelFolder: Absent("ls: …")}, pair=True), "fail block"),
    ("STO-01", world(LOCAL), "skip ok"),
    ("STO-02", world(Arrays((Array("md0", "raid1", True, 2, 2),))), "pass ok"),
    ("STO-02", world(Arrays((Array("md0", "raid1", True, 2, 1, "recovery"),))), "fail warn"),
    ("STO-02", world(Arrays((Array("md0", "raid1", True, 2, 2, "resync"),))), "warn note"),
    ("STO-03", world(Disks((Disk("/", 1000_000, 500_000),))), "pass ok"),
    ("STO-03", world(Disks((Disk("/", 1000_000, 50_000),))), "warn note"),
    ("STO-03", world(Disks((Disk("/", 1000_000, 100),))), "fail block"),
    ("STO-04", world(WHOLE, pair=True), "pass ok"),
    ("STO-04", world(without("a.safetensors"), pair=True), "fail block"),
    ("STO-04", world(replace(WHOLE, tensor_bytes=3000), pair=True), "fail block"),
    ("STO-04", world(replace(WHOLE, files={**WHOLE.files, "a.safetensors": 130}), pair=True), "fail block"),
    ("STO-04", world(absent={ModelFolder: Unknown("permission denied")}, pair=True), "unknown block"),
    ("STO-05", world(replace(WHOLE, files={"a.safetensors": 10**11}), ReadSpeed("a", 2000.0)), "pass ok"),
    ("STO-05", world(replace(WHOLE, files={"a.safetensors": 10**12}), ReadSpeed("a", 2000.0)), "warn warn"),
    ("STO-06", world(WHOLE, pair=True), "pass ok"),
    ("STO-06", world(without("generation_config.json"), pair=True), "warn note"),
    ("STO-06", world(without("tiktoken.model"), pair=True), "fail warn"),
    ("STO-07", world(ModelConfig("kimi_k3"), pair=True), "pass ok"),
    ("STO-07", world(ModelConfig("llama"), pair=True), "fail warn"),
]  # fmt: skip

CACHE = replace(PAIR, knobs={"hierarchical_cache": True, "hicache_size_gb": 100})

SYSTEM = [
    ("OS-01", world(CPU), "pass ok"),
    ("OS-01", world(replace(CPU, os_id="arch", os_version="")), "warn note"),
    ("OS-01", world(OLD), "warn note"),
    ("OS-02", world(Inside(container="c", memlock_kib=-1)), "pass ok"),
    ("OS-02", world(Inside(container="c", memlock_kib=8192)), "fail warn"),
    ("OS-02", world(Limits(memlock=8_388_608), pair=True, deployment=VENV), "fail warn"),
    ("OS-02", world(Limits(memlock=-1), pair=True, deployment=VENV), "pass ok"),
    ("OS-02", world(Limits(memlock=8_388_608), pair=True), "skip ok"),
    ("OS-03", world(Inside(container="c", shm_mib=64), SharedMemory(999_999, 9)), "fail warn"),
    ("OS-03", world(Inside(container="c", ipc="host", shm_mib=64)), "pass ok"),
    ("OS-03", world(SharedMemory(999_999, 9)), "pass ok"),
    ("OS-03", world(SharedMemory(16_000, 9)), "warn note"),
    ("OS-04", world(Memory(2_000_000, 1_900_000), EIGHT, pair=True, deployment=CACHE), "pass ok"),
    ("OS-04", world(Memory(2_000_000, 500_000), EIGHT, pair=True, deployment=CACHE), "fail warn"),
    ("OS-04", world(Memory(2_000_000, 500_000), EIGHT, pair=True), "skip ok"),
    ("OS-05", world(Processors(224, 224, 2, ("performance",))), "pass ok"),
    ("OS-05", world(Processors(224, 224, 2, ("powersave",))), "warn note"),
    ("OS-05", world(Processors(223, 224)), "fail warn"),
    ("OS-06", world(Processors(4, 4, numa_balancing=False, swap_kib=0)), "pass ok"),
    ("OS-06", world(Processors(4, 4, numa_balancing=True, swap_kib=0)), "warn note"),
    ("OS-06", world(Processors(4, 4)), "unknown note"),
    ("OS-07", world(Limits(files=1024, engine={"files": 1_048_576})), "pass ok"),
    ("OS-07", world(Limits(files=1024)), "warn warn"),
    ("OS-08", world(Stuck(())), "pass ok"),
    ("OS-08", world(Stuck(("nvidia-smi (4711)",))), "warn warn"),
    ("OS-08", world(Stuck(("jbd2 (11)",))), "pass ok"),
    ("OS-09", world(Kernels("6.8.0-90", {"6.8.0-90": True})), "pass ok"),
    ("OS-09", world(Kernels("6.8.0-90", {"6.8.0-90": True, "6.8.0-101": False})), "fail warn"),
    ("OS-09", world(Kernels("6.8.0-90", {"6.8.0-90": True, "6.8.0-101": True})), "warn note"),
    ("OS-09", world(Kernels("6.8.0-90", {"6.8.0-101": True})), "warn warn"),
    ("OS-10", world(MemoryErrors(0, 0)), "pass ok"),
    ("OS-10", world(MemoryErrors(3, 0)), "warn note"),
    ("OS-10", world(MemoryErrors(3, 1)), "fail warn"),
    ("OS-10", world(absent={MemoryErrors: Absent("no EDAC")}), "skip ok"),
]  # fmt: skip

GOOD, BAD, LOST = Known(True, "{}"), Known(False, "{}"), Unknown("refused")


def etcd(*health: Known[bool] | Unknown, **more: object) -> World:
    told = {"version": "3.5.9", "leader": "1", **more}
    members = (EtcdMember(f"http://{i}:2379", h, **told) for i, h in enumerate(health))  # type: ignore[arg-type]
    return world(Etcd(tuple(members)), pair=True)


ADDRESSES = Addresses("b300-04", {"127.0.0.1": "lo", "192.0.2.14": "bond0"}, "192.0.2.1", "bond0")
WEB = Listener(8998, "0.0.0.0", 4711, "python3", "/system.slice/docker-3fa1b2c3d4e5f6.scope")
HELD = Containers((Container("k3", id="3fa1b2c3d4e5f6", labels=OURS, state="running"),))


def advertised(address: str, *values: object) -> World:
    return replace(world(*values), host=Host("b300-04", Login("x"), advertise=address))


NETWORK = [
    ("NET-01", etcd(GOOD, GOOD, GOOD), "pass ok"),
    ("NET-01", etcd(GOOD, GOOD, LOST), "warn warn"),
    ("NET-01", etcd(GOOD, LOST, LOST), "fail block"),
    ("NET-01", etcd(GOOD, BAD, BAD), "fail block"),
    ("NET-01", etcd(GOOD, GOOD, GOOD, leader=""), "fail block"),
    ("NET-01", etcd(GOOD, GOOD, GOOD, alarms=("alarm:NOSPACE",)), "fail block"),
    ("NET-01", etcd(GOOD, bytes_used=2 * 10**9), "warn warn"),
    ("NET-01", etcd(GOOD, bytes_used=2147000000), "fail block"),
    ("NET-01", etcd(Unknown("the host has no means to ask")), "unknown block"),
    ("NET-01", world(), "skip ok"),
    ("NET-02", etcd(GOOD, milliseconds=Known(12.0)), "pass ok"),
    ("NET-02", etcd(GOOD, milliseconds=Known(300.0)), "warn warn"),
    ("NET-02", etcd(GOOD, milliseconds=Unknown("etcd says HTTP 403")), "fail warn"),
    ("NET-02", etcd(GOOD), "unknown note"),
    ("NET-03", world(Nats("nats://n:4222", "2.10"), pair=True), "pass ok"),
    ("NET-03", world(absent={Nats: Unknown("refused")}, pair=True), "fail block"),
    ("NET-03", world(absent={Nats: Unknown("the host has no means to ask")}, pair=True), "unknown block"),
    ("NET-04", world(Reach({"b:8998": "refused", "b:5600": "open"})), "pass ok"),
    ("NET-04", world(Reach({"b:8998": "timeout"})), "fail block"),
    ("NET-05", world(Listeners((Listener(22, "::"),)), pair=True), "pass ok"),
    ("NET-05", world(Listeners((WEB,)), pair=True), "fail block"),
    ("NET-05", world(Listeners((WEB,)), HELD, pair=True), "warn note"),
    ("NET-06", advertised("192.0.2.14", ADDRESSES), "pass ok"),
    ("NET-06", advertised("198.51.100.7", ADDRESSES), "warn warn"),
    ("NET-06", advertised("0.0.0.0", ADDRESSES), "fail warn"),
    ("NET-06", advertised("", ADDRESSES), "warn note"),
    ("NET-07", world(Names({"a": ("192.0.2.9",)}), ADDRESSES, pair=True), "pass ok"),
    ("NET-07", world(Names({"a": ()}), ADDRESSES, pair=True), "fail block"),
    ("NET-07", world(Names({"b300-04": ("127.0.1.1",)}), ADDRESSES, pair=True), "warn warn"),
    ("NET-07", world(Names({"b300-04": ("127.0.1.1",)}), ADDRESSES), "warn note"),
    ("NET-08", world(Inside(packages={"ai-dynamo": "1.3.0.post1"}), pair=True), "pass ok"),
    ("NET-08", world(Inside(packages={"ai-dynamo": "1.6.1"}), pair=True), "fail warn"),
]  # fmt: skip


def slurm(state: str, *jobs: Job, reason: str = "") -> Slurm:
    return Slurm("active", Known(SlurmNode("b300-04", state, reason), state), Known(jobs, ""))


JOB = Job("812", "ann", "RUNNING", "gres/gpu:2")
KILL = Danger("/etc/slurm/epilog.d/50-exclusive-gpu", 12, "nvidia-smi pmon -c 1 | xargs kill -9")
DROP = Danger("/etc/slurm/epilog.d/80-cleanup", 3, "echo 1 > /proc/sys/vm/drop_caches")
HOOKS = ("/etc/slurm/epilog.sh",)
ANN = GpuOwner(99, "python3", "ann", "/slurm/uid_7/job_812/step_0")
WORKER = GpuOwner(98, "python3", "root", "/system.slice/docker-3fa1b2c3d4e5f6.scope")
SLURM = [
    ("SLU-01", world(absent={Slurm: Absent("no slurmd")}), "skip ok"),
    ("SLU-01", world(slurm("IDLE+DRAIN")), "pass ok"),
    ("SLU-01", world(slurm("IDLE")), "warn warn"),
    ("SLU-01", world(slurm("MIXED", JOB)), "fail warn"),
    ("SLU-01", world(slurm("MIXED", JOB), pair=True), "fail block"),
    ("SLU-02", world(SlurmHooks(HOOKS)), "pass ok"),
    ("SLU-02", world(SlurmHooks(HOOKS, (DROP,))), "warn note"),
    ("SLU-02", world(SlurmHooks(HOOKS, (KILL,))), "fail warn"),
    ("SLU-02", world(SlurmHooks(HOOKS, (KILL,)), slurm("IDLE"), pair=True), "fail block"),
    ("SLU-02", world(SlurmHooks(HOOKS, (KILL,)), slurm("IDLE+DRAIN"), pair=True), "fail warn"),
    ("SLU-02", world(SlurmHooks(HOOKS, (), HOOKS)), "unknown warn"),
    ("SLU-03", world(SshDevices("closed")), "warn warn"),
    ("SLU-03", world(SshDevices("auto")), "pass ok"),
    ("SLU-04", world(GpuOwners(())), "pass ok"),
    ("SLU-04", world(GpuOwners((), is_whole=False)), "unknown note"),
    ("SLU-04", world(GpuOwners((ANN,))), "fail warn"),
    ("SLU-04", world(GpuOwners((ANN,)), pair=True), "fail block"),
    ("SLU-04", world(GpuOwners((WORKER,)), HELD, pair=True), "pass ok"),
    ("SLU-05", world(SlurmHooks(HOOKS, health="/usr/sbin/nhc")), "warn note"),
    ("SLU-05", world(SlurmHooks(HOOKS)), "pass ok"),
    ("SLU-06", world(slurm("IDLE+DRAIN", reason="bringup: k3"), Containers(())), "warn note"),
    ("SLU-06", world(slurm("IDLE+DRAIN", reason="bringup: k3"), HELD), "pass ok"),
    ("SLU-06", world(slurm("IDLE")), "skip ok"),
]  # fmt: skip

ALL = [*NETWORK_CARDS, *CONTAINERS, *STORAGE, *SYSTEM, *NETWORK, *SLURM]


@pytest.mark.parametrize(("identity", "of", "said"), ALL, ids=[f"{r[0]} {r[2]}" for r in ALL])
def test_a_situation_is_judged(identity: str, of: World, said: str) -> None:
    found = finding(identity, of)
    assert f"{found.status.value} {found.level.value}" == said, found
    assert found.evidence, "a finding shows what it saw"
    assert found.remedy or said.endswith("ok") or found.status.value == "unknown", found


def test_the_lists_are_evidence_of_affinity() -> None:
    lines = finding("IB-11", world(RDMA)).evidence
    assert "NCCL_IB_HCA==mlx5_0" in lines
    assert "UCX_NET_DEVICES=mlx5_0:1" in lines


def test_a_port_without_a_subnet_manager_is_no_fault_of_the_host() -> None:
    found = finding("IB-02", world(HALF))
    assert "no subnet manager" in found.evidence[0]
    assert found.evidence[0].startswith("mlx5_7: INIT, LinkUp")
    assert found.remedy.startswith("ask whoever runs the subnet manager")


def test_slow_weights_raise_the_budget() -> None:
    slow = replace(WHOLE, files={"a.safetensors": 10**12})
    assert finding("STO-05", world(slow, ReadSpeed("a", 2000.0))).decide == {
        "ready_timeout_s": 1500
    }
