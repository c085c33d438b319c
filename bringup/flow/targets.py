"""Which containers and processes a deployment consists of, and what their scripts say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..core.errors import UsageError
from ..core.facts import Facts
from ..core.host import Deployment, Host, Inventory
from ..core.nearest import did_you_mean
from ..core.rules import World
from ..core.script import Ask, Section
from ..core.words import HostPath, quote
from ..decide import Part, design
from ..engines import ENGINES, services
from ..engines import front as fronts
from ..engines.settle import settled
from ..readiness.stages import Worker
from ..serve.targets import front_of, service_of, worker_of


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment as it is waited for, started and stopped: its parts, hosts and front."""

    inventory: Inventory
    deployment: Deployment
    workers: tuple[Worker, ...]

    @property
    def hosts(self) -> tuple[Host, ...]:
        names = {worker.host for worker in self.workers}
        return tuple(host for name, host in self.inventory.hosts.items() if name in names)

    def on(self, host: str) -> tuple[Worker, ...]:
        return tuple(worker for worker in self.workers if worker.host == host)

    @property
    def front(self) -> Worker | None:
        return next((worker for worker in self.workers if worker.is_front), None)


def find_deployment(inventory: Inventory, name: str) -> Deployment:
    """Return a deployment by name; the only one there is where none was named."""
    if not name and len(inventory.deployments) == 1:
        return next(iter(inventory.deployments.values()))
    if name:
        return inventory.deployment(name)
    names = ", ".join(sorted(inventory.deployments)) or "none"
    raise UsageError(
        "cannot tell which deployment is meant", remedy=f"name one (--deployment): {names}"
    )


def target_of(inventory: Inventory, deployment: Deployment) -> Target:
    """Return a deployment's parts as far as the inventory alone tells: names, paths and ports.

    Knobs that rules would turn are not known without facts; what a script says of itself is
    (`as_written`).
    """
    names = dict.fromkeys(host for role in deployment.roles for host in role.hosts)
    blank = {name: Facts() for name in names}
    parts = [
        part
        for name in names
        for part in design(inventory, inventory.hosts[name], deployment, blank, {}).parts
    ]
    parts += service_parts(inventory, deployment)
    return Target(inventory, deployment, tuple(part_worker(deployment, part) for part in parts))


def service_parts(inventory: Inventory, deployment: Deployment) -> list[Part]:
    """Return etcd, NATS and the frontend where the deployment says that bringup runs them.

    A frontend on a host of a role is part of that host's design, and left out here.
    """
    name = deployment.services.host
    if not name:
        return []
    host = inventory.hosts[name]
    bare = World(host, Facts(), None, deployment, None)
    parts = [
        Part(replace(bare, role=services.role_of(spec.role, name)), spec, ())
        for spec in services.specs(deployment, host, settled(_in_role(bare, "etcd"), ()))
    ]
    placed = fronts.place_of(deployment, inventory.hosts) == name
    if placed and not deployment.roles_of(name):
        world = replace(bare, role=fronts.role_of(deployment, name))
        spec = fronts.front(deployment, world, (), settled(world, ()), peers={})
        parts.append(Part(world, spec, ()))
    return parts


def _in_role(world: World, role: str) -> World:
    return replace(world, role=services.role_of(role, world.host.name))


def part_worker(deployment: Deployment, part: Part) -> Worker:
    """Return the worker, service, or what is in front, that a part describes."""
    host = part.world.host
    if part.spec.engine in services.SERVICES:
        return service_of(part.spec, host)
    if not part.spec.has_gpus:
        return front_of(part.spec, deployment, host)
    return worker_of(part.spec, deployment, host, ENGINES[deployment.engine])


HEAD = ("NAME", "CONFIG", "READY_TIMEOUT_S", "IMAGE", "IMAGE_DIGEST")


def head_ask(worker: Worker) -> Ask:
    """Return the question for what a written script says of itself."""
    names = "\\|".join(HEAD)
    path = quote(HostPath(worker.script))
    script = f"[ -r {path} ] || {{ echo absent; exit 3; }}\nsed -n '/^\\({names}\\)=/p' {path}"
    return Ask(head_name(worker), script)


def head_name(worker: Worker) -> str:
    return f"head:{worker.name}"


def as_written(worker: Worker, section: Section) -> Worker:
    """Return a worker with what its script on the host says; unchanged where there is none."""
    if section.exit != 0:
        return worker
    said = dict(line.partition("=")[::2] for line in section.text.splitlines())
    told = {name: value.strip().strip("'") for name, value in said.items()}
    timeout = told.get("READY_TIMEOUT_S", "")
    return replace(
        worker,
        config=told.get("CONFIG", worker.config),
        timeout_s=int(timeout) if timeout.isdecimal() else worker.timeout_s,
        image=told.get("IMAGE_DIGEST") or told.get("IMAGE") or worker.image,
    )


def chosen(
    workers: Iterable[Worker], *, hosts: Iterable[str], roles: Iterable[str]
) -> list[Worker]:
    """Return the workers on some hosts and in some roles; () chooses all.

    Raises UsageError for a role that nobody plays.
    """
    every, wanted_hosts, wanted_roles = list(workers), set(hosts), set(roles)
    known = {worker.role for worker in every}
    if odd := sorted(wanted_roles - known):
        raise UsageError(
            f"cannot find role {odd[0]!r}{did_you_mean(odd[0], known)}",
            remedy=f"roles: {', '.join(sorted(known))}",
        )
    return [
        worker
        for worker in every
        if (not wanted_hosts or worker.host in wanted_hosts)
        and (not wanted_roles or worker.role in wanted_roles)
    ]


def words_of(target: Target, worker: Worker | None) -> Mapping[str, str]:
    """Return what stands for HOST, ROLE and the like in a command of the catalogue."""
    deployment = target.deployment
    shared = {"NAME": deployment.name, "MODEL_PATH": deployment.model.path}
    shared["DRAFT_PATH"] = deployment.model.draft_path
    shared["IMAGE"] = deployment.image.reference or deployment.image.name
    if deployment.services.etcd:
        shared["ETCD_ENDPOINT"] = deployment.services.etcd[0]
    if deployment.services.frontend:
        shared["FRONTEND"] = deployment.services.frontend.rstrip("/")
    if worker is None:
        return shared
    return {**shared, "HOST": worker.host, "ROLE": worker.role, "CONTAINER": worker.name,
            "UNIT": worker.unit or "UNIT"}  # fmt: skip
