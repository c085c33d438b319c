"""How the worker runs on the host: the container engine, its way to GPUs, services, image."""

from __future__ import annotations

from ..core.host import Deployment, Role, Scalar
from ..core.reading import Absent, Unknown, evidence_of
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, unknown, warned
from ..core.version import at_least
from ..engines.collect import engines
from ..probes.container import ContainerEngine
from .where import DYNAMO, for_worker, is_kimi_k3, said

CONTAINER = "docs/engines.md#containers"
SERVICES = "docs/engines.md#etcd-nats-and-the-frontend"


@for_worker
def _engine(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if not deployment.in_container:
        return None
    seen = world.facts[ContainerEngine]
    if isinstance(seen, Unknown):
        return unknown(seen.why)
    if isinstance(seen, Absent):
        return failed(evidence_of(seen))
    found = seen.value
    choices: dict[str, Scalar] = {"container_engine": found.name}
    evidence = [f"{found.name} {found.version}"]
    if reason := _cdi(found):
        choices["gpu_access"] = "cdi"
        evidence.append(reason)
    elif found.runtimes and "nvidia" not in found.runtimes:
        return failed(
            f"{found.name} lists the runtimes {' '.join(found.runtimes)} and no CDI device",
            remedy="nvidia-ctk runtime configure --runtime=docker, or nvidia-ctk cdi generate",
        )
    return Seen(Status.PASS, tuple(evidence), choices)


def _cdi(found: ContainerEngine) -> str:
    """Return why GPUs should enter by CDI, or "" when the runtime hook serves."""
    if not found.cdi_devices:
        return ""
    if found.name == "podman":
        return "Podman reaches GPUs by CDI"
    if "nvidia" not in found.runtimes:
        return "no nvidia runtime, but CDI devices"
    if found.cgroup_driver == "systemd":
        return "systemd cgroups: a daemon-reload takes GPUs away that the runtime hook gave"
    return ""


@for_worker
def _subset(world: World, deployment: Deployment, role: Role) -> Seen | None:
    if not deployment.in_container or not role.gpus:
        return None
    if said(world, "privileges") != "privileged":
        return None
    return failed(f"role {role.name} takes GPUs {role.gpus}, privileges = privileged")


@for_worker
def _image(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if not deployment.in_container or deployment.image.reference:
        return None
    return failed(f"image {deployment.image.name} has no reference")


@for_worker
def _discovery(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    if deployment.engine not in DYNAMO or deployment.services.etcd:
        return None
    other = role.env.get("DYN_DISCOVERY_BACKEND", "")
    if other and other != "etcd":
        return passed(f"discovery by {other}")
    return failed("services.etcd is empty")


@for_worker
def _nats(world: World, deployment: Deployment, _role: Role) -> Seen | None:
    if deployment.engine not in DYNAMO or not deployment.services.nats:
        return None
    if "nats" in (said(world, "request_plane"), said(world, "event_plane")):
        return None
    return warned(f"services.nats = {deployment.services.nats}; both planes do without it")


@for_worker
def _tokenizer(_world: World, deployment: Deployment, _role: Role) -> Seen | None:
    version = deployment.image.dynamo_version
    if not is_kimi_k3(deployment) or deployment.engine not in DYNAMO:
        return None
    knows = at_least(version, "1.5.0")
    if knows is None:
        return unknown("dynamo_version is not stated")
    return None if knows else warned(f"Dynamo {version}; kimi_k3 is known from 1.5.0 on")


@for_worker
def _by_hand(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    """A role's or deployment's value reaches all its hosts; these differ from host to host."""
    if len(role.hosts) < 2 and len(deployment.roles) < 2:
        return None
    found = [f"role {role.name} sets {n} for {len(role.hosts)} hosts" for n in PER_HOST_ENV
             if n in role.env and len(role.hosts) > 1]  # fmt: skip
    found += [f"role {role.name} sets {knob}" for knob in PER_HOST
              if knob in role.knobs and len(role.hosts) > 1]  # fmt: skip
    hosts = {host for other in deployment.roles for host in other.hosts}
    found += [f"{deployment.name} sets {k}" for k in PER_HOST
              if k in deployment.knobs and len(hosts) > 1]  # fmt: skip
    return failed(*found) if found else None


@for_worker
def _beside_knobs(_world: World, deployment: Deployment, role: Role) -> Seen | None:
    """Name what is given by hand although a knob spells it: rules look at knobs."""
    engine = engines().get(deployment.engine)
    spelt = {
        word: setting.knob
        for setting in (engine.settings if engine else ())
        for word in (setting.flag, setting.off, setting.variable)
    }
    given = (*(f"--{name.lstrip('-')}" for name in role.flags), *role.env)
    found = [f"{word} of role {role.name} is knob {spelt[word]}" for word in given if word in spelt]
    return warned(*found) if found else None


PER_HOST = (
    "ucx_net_devices", "nccl_ib_hca", "advertise_host", "side_channel_host", "node_rank",
)  # fmt: skip
PER_HOST_ENV = (
    "UCX_NET_DEVICES", "NCCL_IB_HCA", "SGLANG_HOST_IP", "VLLM_HOST_IP", "DYN_TCP_RPC_HOST",
    "VLLM_NIXL_SIDE_CHANNEL_HOST",
)  # fmt: skip

ROWS: tuple[Row[World], ...] = (
    Row("container-engine", "A container engine that reaches GPUs", _engine,
        "the worker runs in a container; without a way to the GPUs CUDA finds none", CONTAINER,
        "install Docker and the NVIDIA Container Toolkit, or set in_container: false",
        {Status.UNKNOWN: Level.BLOCK}),
    Row("gpu-subset-privileged", "A part of the GPUs in a privileged container", _subset,
        "a privileged container sees every GPU of the host, whatever was chosen", CONTAINER,
        "set privileges: devices"),
    Row("image-named", "The image has a name", _image,
        "the script starts a container of it", CONTAINER,
        "state image.reference in the deployment, or add images/NAME/image.yml"),
    Row("discovery", "Workers can register", _discovery,
        "the frontend finds workers by what they write into etcd", SERVICES,
        "list the etcd endpoints under services.etcd in the deployment"),
    Row("nats-not-needed", "NATS is not needed", _nats,
        "since planes default to tcp and zmq nothing uses NATS, yet a worker that is told of it "
        "fails when it is down", SERVICES, "remove services.nats unless you mean it",
        {Status.WARN: Level.NOTE}),
    Row("kimi-k3-tokenizer", "The frontend reads Kimi K3's tokenizer", _tokenizer,
        "Dynamo's frontend before 1.5.0 refuses model type kimi_k3: the model list stays empty",
        "docs/engines.md#kimi-k3",
        "put tokenizer.json and a chat template into the tokenizer bundle, or start the frontend "
        "with --dyn-chat-processor sglang --trust-remote-code, or use Dynamo 1.5.0 or later"),
    Row("knob-by-hand", "Settings that knobs spell are given as knobs", _beside_knobs,
        "rules read knobs: a flag or variable given by hand passes them by",
        "docs/inventory.md#deployments", "write it under knobs: instead"),
    Row("per-host-values", "Values of one host stay with it", _by_hand,
        "device names and addresses differ from host to host; a copied one hangs or goes astray",
        "docs/engines.md#rdma-devices", "remove them: they are computed on each host, or set "
        "them under that host in inventory/hosts.yml"),
)  # fmt: skip
