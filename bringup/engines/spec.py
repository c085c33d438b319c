"""Settle a worker whole: its words, its container, its script, and the digest that names it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.document import digest
from ..core.host import Deployment, Mode, Role
from ..core.knobs import Decision
from ..core.rules import World
from ..core.words import Secret
from .derive import derived
from .engine import CommandLine, Engine, Settled, plainly

CONTAINER = "serve/container.sh.j2"
PROCESS = "serve/process.sh.j2"
UNIT = "serve/unit.service.j2"


@dataclass(frozen=True, slots=True)
class Spec:
    """All that a worker on one host is to be. Paths are as the host sees them.

    `config` is the digest of everything that changes what runs; the container carries it as a
    label, so that serving can tell a drifted worker from a current one.
    """

    host: str
    deployment: str
    role: str
    mode: Mode
    engine: str
    script_name: str
    template: str
    folder: str
    name: str
    image: str
    image_digest: str
    command: CommandLine
    ready_timeout_s: int
    ports: Mapping[str, int]
    decisions: Mapping[str, Decision]
    config: str = ""
    has_gpus: bool = True  # a router or frontend takes none, and needs no weights
    data: str = ""  # folder of a service's own data, the same on the host and in its container
    secrets: Mapping[str, Secret] = field(default_factory=dict)

    @property
    def script(self) -> str:
        """The script's path on the host."""
        return f"{self.folder}/{self.script_name}"

    @property
    def unit_name(self) -> str:
        """The systemd unit that runs the script where the knob `service` asks for one."""
        return f"bringup-{self.name}.service"

    @property
    def unit(self) -> str:
        """The unit's path on the host, "" where none is wanted."""
        return f"/etc/systemd/system/{self.unit_name}" if flag(self.decisions, "service") else ""

    @property
    def secrets_file(self) -> str:
        """The file of secret variables, to be written with mode 0600; "" when there are none."""
        return f"{self.folder}/{self.script_name.removesuffix('.sh')}.env" if self.secrets else ""

    @property
    def secrets_text(self) -> str:
        """The content of `secrets_file`: NAME=value lines, as container engines read them."""
        return "".join(f"{name}={value.reveal}\n" for name, value in sorted(self.secrets.items()))


def specify(
    engine: Engine,
    deployment: Deployment,
    role: Role,
    world: World,
    decisions: Settled,
    *,
    peers: Mapping[str, str],
) -> Spec:
    """Return the spec of a role's worker on the world's host.

    `peers` gives the advertised address of every host of the deployment (see `Host.reached_at`).
    """
    settled = derived(decisions, world, role, port=engine.port, peers=peers)
    command = engine.command(settled, world, deployment, role)
    spec = Spec(
        host=world.host.name,
        deployment=deployment.name,
        role=role.name,
        mode=role.mode,
        engine=engine.name,
        script_name=_script_name(engine, deployment, role, world.host.name),
        template=CONTAINER if deployment.in_container else PROCESS,
        folder=f"{text(settled, 'serve_folder').rstrip('/')}/{deployment.name}",
        name=text(settled, "container_name") or f"{deployment.name}-{role.name}",
        image=deployment.image.reference if deployment.in_container else "",
        image_digest=deployment.image.digest if deployment.in_container else "",
        command=command,
        ready_timeout_s=int(settled["ready_timeout_s"].value),
        ports=_ports(engine, settled, role),
        decisions=settled,
        secrets={k: v for k, v in command.env.items() if isinstance(v, Secret)},
    )
    return named(spec)


def text(settled: Settled, knob: str) -> str:
    """Return a knob's value as text, or "" when nothing set it."""
    decision = settled.get(knob)
    return "" if decision is None else plainly(decision.value)


def flag(settled: Settled, knob: str) -> bool:
    """Return whether a yes-or-no knob is set to yes."""
    decision = settled.get(knob)
    return decision is not None and decision.value is True


def _script_name(engine: Engine, deployment: Deployment, role: Role, host: str) -> str:
    """Two roles of one mode on one host get the role in their script's name."""
    name = engine.script_of(role.mode)
    same = [r for r in deployment.roles_of(host) if r.mode is role.mode]
    return name if len(same) < 2 else f"{name.removesuffix('.sh')}_{role.name}.sh"


def _ports(engine: Engine, settled: Settled, role: Role) -> dict[str, int]:
    """Return the ports that the worker listens on, by knob."""
    pair = role.mode is not Mode.AGGREGATED
    listens = {
        "port": True,
        "system_port": engine.registers,
        "rpc_port": engine.registers,
        "bootstrap_port": pair and role.mode is Mode.PREFILL and "sglang" in engine.name,
        "side_channel_port": pair and "vllm" in engine.name,
    }
    return {
        knob: int(settled[knob].value)
        for knob, does in listens.items()
        if does and knob in settled and int(settled[knob].value) > 0
    }


# What changes how the worker runs, besides its words; the rest of the knobs reach argv or env.
RUNS_BY = (
    "privileges", "gpu_access", "shm", "share_pid", "memlock", "restart", "container_engine",
    "cache_folder", "log_max_size", "log_max_files", "venv", "python", "ready_timeout_s",
)  # fmt: skip


def named(spec: Spec) -> Spec:
    """Return the spec with its digest. Secrets count by name only, so that it can be shown."""
    whole = {
        "argv": spec.command.argv,
        "env": spec.command.env,
        "image": [spec.image, spec.image_digest],
        "name": spec.name,
        "runs": {knob: spec.decisions[knob].value for knob in RUNS_BY if knob in spec.decisions},
        "template": spec.template,
        **({"data": spec.data} if spec.data else {}),
    }
    fields = {name: getattr(spec, name) for name in Spec.__dataclass_fields__}
    return Spec(**{**fields, "config": digest(whole)})
