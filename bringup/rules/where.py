"""Where the engine runs decides which facts count: a host's nvcc says nothing of a container's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.rules import Seen, World
from ..core.version import at_least, version
from ..probes.environment import Environment
from ..probes.gpu import Gpus
from ..probes.inside import Inside
from ..probes.toolkit import Nvcc

Look: TypeAlias = Callable[[World, Deployment, Role], Seen | None]


def for_worker(look: Look) -> Callable[[World], Seen | None]:
    """Make a row's look from one that needs a deployment and a role; silent without them."""

    @wraps(look)
    def whole(world: World) -> Seen | None:
        if world.deployment is None or world.role is None:
            return None
        return look(world, world.deployment, world.role)

    return whole


SGLANG = "dynamo.sglang"
VLLM = ("vllm", "dynamo.vllm")
DYNAMO = ("dynamo.sglang", "dynamo.vllm")
KIMI_K3 = "kimi_k3"

# Oldest toolkit that compiles for a compute capability (CUDA 12.9 features archive).
TOOLKIT_FLOORS = {"10.0": "12.8", "10.3": "12.9"}


def where_engine_runs(world: World) -> Reading[Nvcc]:
    """Return what is known of nvcc at the place where the engine runs.

    In a container that is what was seen inside its image, else what `image.yml` promises; without
    one, what the host's probe saw.
    """
    deployment = world.deployment
    if deployment is None or not deployment.in_container:
        return world.facts[Nvcc]
    look = world.facts[Inside]
    if isinstance(look, Known) and not isinstance(look.value.nvcc, Unknown):
        return look.value.nvcc
    image = deployment.image
    said = f"image {image.name} states nvcc: {image.nvcc or 'nothing'}"
    if not image.nvcc:
        return Unknown(f"images/{image.name}/image.yml does not say whether nvcc is inside", said)
    if image.nvcc == "none":
        return Absent(said)
    short = ".".join(image.nvcc.split(".")[:2])
    return Known(Nvcc(short, image.nvcc, ""), said)


def usable_nvcc(world: World) -> Reading[Nvcc]:
    """Return nvcc as far as it compiles for this host's GPUs; one that is too old is absent."""
    reading = where_engine_runs(world)
    floor = toolkit_floor(world)
    if not isinstance(reading, Known) or not floor:
        return reading
    have, need = version(reading.value.version), version(floor)
    if have is None or need is None:
        return Unknown(f"cannot read nvcc version {reading.value.version!r}", reading.evidence)
    if have < need and (chosen := chosen_nvcc(world, reading.value, floor)):
        return Known(chosen, f"CUDA_HOME leads to nvcc {chosen.full}")
    if have < need:
        return Absent(f"nvcc {reading.value.version} cannot compile for these GPUs: need {floor}")
    return reading


def chosen_nvcc(world: World, nvcc: Nvcc, floor: str) -> Nvcc | None:
    """Return the fitting compiler that CUDA_HOME leads to, beside one in PATH that is too old."""
    reading = world.facts[Environment]
    home = reading.value.values.get("CUDA_HOME", "") if isinstance(reading, Known) else ""
    for path, _, full in (other.rpartition(" ") for other in nvcc.others):
        if home and path == f"{home.rstrip('/')}/bin/nvcc" and at_least(full, floor):
            return Nvcc(".".join(full.split(".")[:2]), full, path)
    return None


def toolkit_floor(world: World) -> str:
    """Return the oldest toolkit for this host's GPUs, or "" when their kind is not known."""
    return TOOLKIT_FLOORS.get(capability(world), "")


def capability(world: World) -> str:
    """Return the compute capability of the host's GPUs, "" when not known."""
    seen = world.facts[Gpus]
    told = {gpu.compute_capability for gpu in seen.value.gpus} if isinstance(seen, Known) else set()
    if len(told) == 1 and (only := told.pop()):
        return only
    return world.kind.compute_capability if world.kind else ""


def is_blackwell(world: World) -> bool:
    """Return whether the GPUs are data-centre Blackwell (compute capability 10.x)."""
    return capability(world).startswith("10.")


def said(world: World, knob: str) -> Scalar | None:
    """Return what people wrote for a knob: host over role over deployment over kind.

    A rule that needs another knob asks here, since rules run before knobs are settled.
    """
    places = (
        world.host.knobs,
        world.role.knobs if world.role else {},
        world.deployment.knobs if world.deployment else {},
        world.kind.knobs if world.kind else {},
    )
    return next((place[knob] for place in places if knob in place), None)


def number(world: World, knob: str, default: int) -> int:
    """Return a knob that counts something, or the default when nobody set it."""
    value = said(world, knob)
    return int(value) if isinstance(value, int | float) else default


def is_pair(role: Role) -> bool:
    """Return whether a role is one side of a prefill/decode pair."""
    return role.mode in (Mode.PREFILL, Mode.DECODE)


def sides(deployment: Deployment, mode: Mode) -> tuple[str, ...]:
    """Return the hosts of all roles of one mode, each once."""
    hosts = (host for role in deployment.roles if role.mode is mode for host in role.hosts)
    return tuple(dict.fromkeys(hosts))


def crosses_hosts(deployment: Deployment) -> bool:
    """Return whether some prefill and some decode worker are on different hosts."""
    prefill, decode = sides(deployment, Mode.PREFILL), sides(deployment, Mode.DECODE)
    return any(one != other for one in prefill for other in decode)


def needs_network(deployment: Deployment, role: Role) -> bool:
    """Return whether this role's GPUs talk to another host's: KV between roles, or one worker."""
    return any(len(worker) > 1 for worker in role.workers) or (
        is_pair(role) and crosses_hosts(deployment)
    )


def shares_host(deployment: Deployment, role: Role, host: str) -> bool:
    """Return whether both sides of a pair are on this host."""
    modes = {other.mode for other in deployment.roles_of(host)}
    return is_pair(role) and {Mode.PREFILL, Mode.DECODE} <= modes


def is_kimi_k3(deployment: Deployment) -> bool:
    return deployment.model.architecture == KIMI_K3
