"""Rules across the hosts of a deployment: what both roles must share, and must not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from ..core.host import Deployment, Mode, Role, Scalar
from ..core.reading import Absent, Known, Unknown, evidence_of
from ..core.rules import Joint, Level, Row, Seen, Status, failed, passed, unknown, warned
from ..probes.gpu import Gpus
from ..probes.infiniband import InfiniBand
from ..probes.model import ModelFolder
from .where import SGLANG, VLLM, crosses_hosts, is_pair, sides

PAIRS = "docs/engines.md#pairs"

SHARED_KNOBS = (
    "page_size", "kv_cache_dtype", "transfer_backend", "bootstrap_port", "request_plane",
    "event_plane", "conv_state_layout",
)  # fmt: skip
SHARED_FLAGS = (
    "--served-model-name", "--model-path", "--model", "--revision", "--page-size", "--block-size",
    "--kv-cache-dtype", "--disaggregation-transfer-backend", "--disaggregation-bootstrap-port",
)  # fmt: skip
SHARED_ENV = (
    "ETCD_ENDPOINTS", "NATS_SERVER", "DYN_NAMESPACE", "DYN_DISCOVERY_BACKEND",
    "DYN_REQUEST_PLANE", "DYN_EVENT_PLANE", "VLLM_SSM_CONV_STATE_LAYOUT",
)  # fmt: skip


def _complete(joint: Joint) -> Seen | None:
    modes = {role.mode for role in joint.deployment.roles}
    if modes in ({Mode.PREFILL}, {Mode.DECODE}):
        return failed(f"{joint.deployment.name} has {modes.pop().value} workers only")
    return None


def _rdma(joint: Joint) -> Seen | None:
    """Every host of both sides has an active compute device, or an operator accepts TCP."""
    deployment = joint.deployment
    if not crosses_hosts(deployment):
        return None
    hosts = dict.fromkeys((*sides(deployment, Mode.PREFILL), *sides(deployment, Mode.DECODE)))
    without, dark = [], []
    for name in hosts:
        world = joint.worlds.get(name)
        seen = world.facts[InfiniBand] if world else Unknown("host was not probed")
        if isinstance(seen, Unknown):
            dark.append(f"{name}: {seen.why}")
        elif isinstance(seen, Absent):
            without.append(f"{name}: no RDMA device ({evidence_of(seen)})")
        elif not any(device.is_active for device in seen.value.compute):
            line = f"{name}: no active compute device among {len(seen.value.devices)}"
            (without if seen.value.whole else dark).append(line)
    if deployment.accept_tcp and (without or dark):
        return warned(*without, *dark, "accept_tcp: true")
    if without:
        return failed(*without)
    return unknown(*dark) if dark else passed(f"active on {' '.join(hosts)}")


def _written(joint: Joint, role: Role, host: str, knob: str) -> Scalar | None:
    """Return what stands for a knob: host over role over deployment."""
    world = joint.worlds.get(host)
    places = (world.host.knobs if world else {}, role.knobs, joint.deployment.knobs)
    return next((place[knob] for place in places if knob in place), None)


def _pair(deployment: Deployment) -> tuple[Role, ...]:
    return tuple(role for role in deployment.roles if is_pair(role))


def _agrees(joint: Joint) -> Seen | None:
    """What both sides of a pair must say alike is said alike: knobs, extra flags, variables."""
    roles = _pair(joint.deployment)
    differing = [
        *_differing(
            (
                knob,
                {f"{r.name} on {h}": _written(joint, r, h, knob) for r in roles for h in r.hosts},
            )
            for knob in SHARED_KNOBS
        ),
        *_differing((f, {r.name: _flag(r, f) for r in roles}) for f in SHARED_FLAGS),
        *_differing((n, {r.name: r.env.get(n) for r in roles}) for n in SHARED_ENV),
    ]
    return failed(*differing) if differing else None


def _flag(role: Role, name: str) -> Scalar | None:
    return role.flags.get(name, role.flags.get(name.removeprefix("--")))


def _differing(said: Iterable[tuple[str, Mapping[str, Scalar | None]]]) -> Iterator[str]:
    for name, values in said:
        if len(set(values.values())) > 1:
            sides_ = (f"{who} says {what if what is not None else 'nothing'}"
                      for who, what in values.items())  # fmt: skip
            yield f"{name}: {', '.join(sides_)}"


def _speculation(joint: Joint) -> Seen | None:
    """vLLM's two sides must register the same KV layers: a draft on one side breaks that."""
    if joint.deployment.engine not in VLLM:
        return None
    said = {r.name: _written(joint, r, h, "speculative_config") or _flag(r, "--speculative-config")
            for r in _pair(joint.deployment) for h in r.hosts}  # fmt: skip
    with_it = [name for name, value in said.items() if value]
    without = [name for name, value in said.items() if not value]
    if with_it and without:
        return failed(f"{' '.join(with_it)} speculates, {' '.join(without)} does not")
    return None


def _contexts(joint: Joint) -> Seen | None:
    """Decode takes every request that prefill takes; a pool with a limit of its own is meant so."""
    roles = [role for role in _pair(joint.deployment) if role.max_context is None]
    said = [(r, _written(joint, r, h, "max_model_len")) for r in roles for h in r.hosts]
    gives, takes = (
        {value for role, value in said if role.mode is mode} for mode in (Mode.PREFILL, Mode.DECODE)
    )
    if gives == takes or not (gives and takes):
        return None
    return warned(*_differing([("max_model_len", {role.name: value for role, value in said})]))


def _transfer_roles(joint: Joint) -> Seen | None:
    """One side of a vLLM pair gives KV, the other takes it."""
    wrong = {Mode.PREFILL: "kv_consumer", Mode.DECODE: "kv_producer"}
    found = [
        f"{role.name} on {host} is {role.mode.value} and says kv_role: {wrong[role.mode]}"
        for role in _pair(joint.deployment)
        for host in role.hosts
        if _written(joint, role, host, "kv_role") == wrong[role.mode]
    ]
    return failed(*found) if found else None


def _parallel(joint: Joint) -> Seen | None:
    """State of a hybrid model is cut by tensor parallel: both sides cut it alike."""
    if not joint.deployment.model.hybrid:
        return None
    roles = _pair(joint.deployment)
    said = {f"{r.name} on {h}": _written(joint, r, h, "tensor_parallel")
            for r in roles for h in r.hosts}  # fmt: skip
    return warned(*_differing([("tensor_parallel", said)])) if len(set(said.values())) > 1 else None


def _gpus_apart(joint: Joint) -> Seen | None:
    """Two roles on one host take different GPUs."""
    clashes = []
    for one, other in combinations(joint.deployment.roles, 2):
        for host in sorted(set(one.hosts) & set(other.hosts)):
            shared = set(one.gpus) & set(other.gpus)
            if shared or not one.gpus or not other.gpus:
                which = ",".join(map(str, sorted(shared))) or "all"
                clashes.append(f"{host}: {one.name} and {other.name} both take GPUs {which}")
    return failed(*clashes) if clashes else None


def _ports_apart(joint: Joint) -> Seen | None:
    """Ports that people set for roles of one host differ, side channels by the copies."""
    clashes = []
    for one, other in combinations(joint.deployment.roles, 2):
        for host in sorted(set(one.hosts) & set(other.hosts)):
            for knob in ("port", "system_port", "rpc_port"):
                mine, theirs = (_written(joint, r, host, knob) for r in (one, other))
                if mine is not None and mine == theirs:
                    clashes.append(f"{host}: {knob} = {mine} for {one.name} and {other.name}")
            clashes += _side_channels(joint, one, other, host)
    return failed(*clashes) if clashes else None


def _side_channels(joint: Joint, one: Role, other: Role, host: str) -> Iterator[str]:
    bases = [_written(joint, role, host, "side_channel_port") for role in (one, other)]
    copies = [_written(joint, role, host, "data_parallel") or 1 for role in (one, other)]
    if None in bases:
        return
    (low, span), (high, _) = sorted(
        (int(b or 0), int(c)) for b, c in zip(bases, copies, strict=True)
    )
    if high - low < span:
        yield f"{host}: side channels {low} and {high} are less than {span} apart"


def _bootstraps(joint: Joint) -> Seen | None:
    """One host holds one SGLang prefill worker: each listens on the bootstrap port."""
    if joint.deployment.engine != SGLANG:
        return None
    prefill = [role for role in joint.deployment.roles if role.mode is Mode.PREFILL]
    shared = {
        host: f"{host}: {one.name} and {other.name} are both prefill"
        for one, other in combinations(prefill, 2)
        for host in sorted(set(one.hosts) & set(other.hosts))
    }
    return failed(*shared.values()) if shared else None


def _hosts_alike(joint: Joint) -> Seen | None:
    """The hosts of one worker hold the same GPUs."""
    unlike = []
    for role in joint.deployment.roles:
        for worker in (w for w in role.workers if len(w) > 1):
            told = {h: _gpus(joint, h) for h in worker}
            if len({value for value in told.values() if value}) > 1:
                unlike.append(", ".join(f"{host}: {value}" for host, value in told.items()))
    return failed(*unlike) if unlike else None


def _gpus(joint: Joint, host: str) -> str:
    world = joint.worlds.get(host)
    seen = world.facts[Gpus] if world else Unknown("host was not probed")
    if not isinstance(seen, Known) or not seen.value.gpus:
        return ""
    return f"{len(seen.value.gpus)} × {seen.value.gpus[0].name}"


def _same_model(joint: Joint) -> Seen | None:
    """All hosts hold the same model folder, file by file."""
    folders = {name: world.facts[ModelFolder] for name, world in joint.worlds.items()}
    known = {n: f.value.identity for n, f in folders.items() if isinstance(f, Known)}
    if len(known) < 2:
        return None
    if len(set(known.values())) == 1:
        return passed(f"the same on {' '.join(known)}")
    return failed(*(f"{name}: {identity[:19]}" for name, identity in known.items()))


def _pools(joint: Joint) -> Seen | None:
    """Several decode pools tell which lengths each of them takes."""
    decode = [role for role in joint.deployment.roles if role.mode is Mode.DECODE]
    unset = [role.name for role in decode if role.max_context is None]
    if len(decode) < 2 or not unset:
        return None
    return warned(f"{len(decode)} decode roles, no max_context for {' '.join(unset)}")


ROWS: tuple[Row[Joint], ...] = (
    Row("pair-complete", "Prefill and decode are both there", _complete,
        "a prefill worker without a decode worker serves nothing, and the reverse", PAIRS,
        "add a role of the other mode, or make this one aggregated"),
    Row("rdma-between-pair", "RDMA between prefill and decode", _rdma,
        "KV over TCP took 1,800 ms where RDMA took 0.16 ms (dynamo#1314)",
        "docs/engines.md#rdma-devices",
        "mend the fabric, serve aggregated, or say accept_tcp: true in the deployment",
        {Status.UNKNOWN: Level.BLOCK}),
    Row("pair-agrees", "Both roles say alike what they must share", _agrees,
        "KV pages of another size or type cannot be read, another name or namespace is never "
        "found", PAIRS, "say it once, for the whole deployment"),
    Row("pair-speculation", "Both sides of a vLLM pair speculate, or neither", _speculation,
        "a draft on one side registers other KV layers: the NIXL handshake fails "
        "(vllm#48221)", "docs/engines.md#nixl", "set speculative_config for the deployment"),
    Row("pair-context", "Both roles take requests of one length", _contexts,
        "decode refuses what is too long for it, while prefill waits for it until its bootstrap "
        "limit and tells a time-out (sglang#23380)",
        "https://github.com/sgl-project/sglang/pull/23380",
        "set max_model_len once, for the whole deployment, or max_context for a decode pool"),
    Row("pair-transfer-roles", "One side gives KV, the other takes it", _transfer_roles,
        "two givers or two takers never exchange a page", "docs/engines.md#nixl",
        "take kv_role out: it follows from the mode, or set kv_both"),
    Row("pair-parallel", "Both sides cut a hybrid model alike", _parallel,
        "SGLang ends a request with `PD Disaggregation does NOT support PD different TP sizes` "
        "for models with Mamba-like or window state; newer versions do for some",
        "https://github.com/sgl-project/sglang", "give both roles the same tensor_parallel, or "
        "prove one request first"),
    Row("gpus-apart", "Roles of one host take different GPUs", _gpus_apart,
        "two engines on one GPU run out of memory at start", PAIRS,
        "give each role its gpus: list"),
    Row("ports-apart", "Roles of one host listen on different ports", _ports_apart,
        "the second worker dies on a taken port; a side channel takes one port a copy",
        "docs/engines.md#addresses-and-ports", "leave the ports out: they are computed"),
    Row("bootstrap-apart", "One SGLang prefill worker on a host", _bootstraps,
        "a prefill worker listens on the bootstrap port, which all roles name alike: the second "
        "one on a host dies on it", "docs/engines.md#addresses-and-ports",
        "give each prefill worker a host of its own, or make one worker of all these GPUs"),
    Row("worker-hosts-alike", "Hosts of one worker are alike", _hosts_alike,
        "one worker cuts layers evenly over all its GPUs", PAIRS,
        "put hosts with the same GPUs into one worker"),
    Row("same-model", "All hosts hold the same model", _same_model,
        "prefill and decode with other weights answer nonsense without an error",
        PAIRS, "bringup weights.sync --deployment DEPLOYMENT --hashes"),
    Row("decode-pools", "Decode pools tell their lengths", _pools,
        "without a limit each pool must hold the longest request", PAIRS,
        "set max_context for each decode role", {Status.WARN: Level.NOTE}),
)  # fmt: skip
