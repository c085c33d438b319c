"""What stands in front of the workers: Dynamo's frontend, or vLLM's router for a plain pair.

Both are kept by their projects. vLLM's toy proxy is a test script and not in its wheel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from ..core.host import Deployment, Host, Mode, Role
from ..core.rules import Finding, Status, World
from ..core.words import Secret
from .build import Piece, assemble
from .check import KINDS, Dialect, findings
from .dynamo import services
from .engine import CommandLine, Settled, plainly
from .services import digest_of, lasting
from .spec import CONTAINER, PROCESS, Spec, named, text

ROUTER, FRONTEND = "vllm-router", "dynamo.frontend"
SCRIPTS = {ROUTER: "serve_vllm_router.sh", FRONTEND: "serve_dynamo_frontend.sh"}
DIALECTS = {
    ROUTER: Dialect(
        ("vllm-router",), prefixes=("VLLM_ROUTER_",), repeats=frozenset({"--prefill", "--decode"})
    ),
    FRONTEND: Dialect(("dynamo.frontend",), prefixes=("DYN_",)),
}
ROUTER_VERSION = "0.1.17"
PORTS = "docs/engines.md#addresses-and-ports"


def kind_of(deployment: Deployment) -> str:
    """Return what a deployment needs in front of its workers, "" for nothing."""
    if deployment.engine.startswith("dynamo."):
        return FRONTEND
    pair = any(role.mode is Mode.PREFILL for role in deployment.roles)
    return ROUTER if pair else ""


def place_of(deployment: Deployment, hosts: Mapping[str, Host]) -> str:
    """Return the host of the deployment on which the front runs, "" where it is elsewhere.

    That is the host that `services.frontend` points at; without one, a router goes to the first
    prefill host. A frontend at another address, such as in Kubernetes, is not ours to start.
    """
    kind, at = kind_of(deployment), urlsplit(deployment.services.frontend).hostname
    if deployment.services.frontend_image and kind == FRONTEND:
        return deployment.services.host
    names = [name for role in deployment.roles for name in role.hosts if name in hosts]
    if not kind:
        return ""
    if at:
        return next((n for n in names if at in (n, hosts[n].reached_at)), "")
    prefill = [n for r in deployment.roles if r.mode is Mode.PREFILL for n in r.hosts]
    return next((n for n in prefill if n in hosts), "") if kind == ROUTER else ""


def role_of(deployment: Deployment, host: str) -> Role:
    """Return the role that a front plays for settling knobs and for its script's name."""
    name = "router" if kind_of(deployment) == ROUTER else "frontend"
    return Role(name, Mode.AGGREGATED, ((host,),))


def front(
    deployment: Deployment,
    world: World,
    workers: Iterable[Spec],
    decisions: Settled,
    *,
    peers: Mapping[str, str],
) -> Spec:
    """Return the spec of what stands in front of these workers, on the world's host."""
    kind, role = kind_of(deployment), role_of(deployment, world.host.name)
    port = _port(deployment, decisions)
    image = deployment.services.frontend_image if kind == FRONTEND else ""
    contained = kind == FRONTEND and (deployment.in_container or bool(image))
    decisions = lasting(decisions) if image else decisions
    make = _router if kind == ROUTER else _frontend
    command = make(deployment, tuple(workers), decisions, peers, port)
    spec = Spec(
        host=world.host.name, deployment=deployment.name, role=role.name, mode=role.mode,
        engine=kind, script_name=SCRIPTS[kind], template=CONTAINER if contained else PROCESS,
        folder=f"{text(decisions, 'serve_folder').rstrip('/')}/{deployment.name}",
        name=f"{deployment.name}-{role.name}",
        image=(image or deployment.image.reference) if contained else "",
        image_digest=(digest_of(image) or deployment.image.digest) if contained else "",
        command=command, ready_timeout_s=60, ports={"http_port": port}, decisions=decisions,
        has_gpus=False,
        secrets={k: v for k, v in command.env.items() if isinstance(v, Secret)},
    )  # fmt: skip
    return named(spec)


def _port(deployment: Deployment, decisions: Settled) -> int:
    told = urlsplit(deployment.services.frontend).port
    return told or int(decisions["http_port"].value)


def _router(
    deployment: Deployment,
    workers: tuple[Spec, ...],
    decisions: Settled,
    peers: Mapping[str, str],
    port: int,
) -> CommandLine:
    """vLLM's router sends a prompt to a prefill worker first, then on to a decode worker."""
    said = (f"workers of {deployment.name}",)
    copies = {plainly(s.decisions["data_parallel"].value) for s in workers
              if "data_parallel" in s.decisions}  # fmt: skip
    pieces = [
        Piece("--vllm-pd-disaggregation", None, ("the deployment has prefill and decode apart",)),
        *_workers(workers, peers, said),
        Piece("--host", text(decisions, "listen_address") or "0.0.0.0", ("clients come in",)),  # noqa: S104
        Piece("--port", str(port), ("said services.frontend or knob http_port",)),
    ]
    if copies and copies != {"1"}:
        pieces.append(Piece("--intra-node-data-parallel-size", max(copies), said))
    return assemble(("vllm-router",), pieces)


def _workers(
    workers: tuple[Spec, ...], peers: Mapping[str, str], said: tuple[str, ...]
) -> Iterator[Piece]:
    for mode, flag in ((Mode.PREFILL, "--prefill"), (Mode.DECODE, "--decode")):
        for spec in (s for s in workers if s.mode is mode and _leads(s)):
            address = peers.get(spec.host, spec.host)
            yield Piece(flag, f"http://{address}:{spec.ports['port']}", said)


def _leads(spec: Spec) -> bool:
    """Return whether a spec is of rank 0: ranks above it serve no clients."""
    rank = spec.decisions.get("node_rank")
    return rank is None or int(rank.value) == 0


def _frontend(
    deployment: Deployment,
    _workers: tuple[Spec, ...],
    decisions: Settled,
    _peers: Mapping[str, str],
    port: int,
) -> CommandLine:
    """Dynamo's frontend finds the workers by itself, through etcd."""
    told = ("said services.frontend or knob http_port",)
    address = text(decisions, "listen_address")
    pieces = [*([Piece("--http-host", address, ("said listen_address",))] if address else []),
              Piece("--http-port", str(port), told)]  # fmt: skip
    return assemble((text(decisions, "python"), "-m", FRONTEND), [*pieces, *services(deployment)])


def check(spec: Spec, deployment: Deployment, workers: Iterable[Spec] = ()) -> tuple[Finding, ...]:
    """Return what the front's version would refuse, and which workers are in its way."""
    versions = {ROUTER: ROUTER_VERSION, FRONTEND: deployment.image.dynamo_version}
    found = findings(spec.command, {spec.engine: versions[spec.engine]}, DIALECTS[spec.engine])
    return (*found, *_taken(spec, workers))


def _taken(spec: Spec, workers: Iterable[Spec]) -> Iterator[Finding]:
    """Yield workers of the same host that somebody gave the front's port."""
    port = spec.ports["http_port"]
    level, title, reason = KINDS["front-port-taken"]
    here = (w for w in workers if w.host == spec.host)
    for role, knob in ((w.role, k) for w in here for k, taken in w.ports.items() if taken == port):
        yield Finding(
            "front-port-taken", title, Status.FAIL, level, "",
            (f"{knob} of {role} is {port}, the port of the {spec.role}",), reason,
            f"leave {knob} of {role} out, or give services.frontend another port", PORTS,
        )  # fmt: skip
