"""Where packages come from: the inventory's repositories, and which one to add to it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..core.host import Repository
from ..core.reading import Known
from ..core.rules import World
from ..core.steps import Step
from ..probes.identity import Identity
from ..steps.package import locker_step, package_step
from ..steps.repository import repository_steps
from .remedy import manager_of


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who publishes packages of some names: the repository's usual name, and how to add it."""

    name: str
    what: str
    packages: tuple[str, ...]
    uri: str  # {system} is such as ubuntu2404 or rhel9
    source: str


PUBLISHERS = (
    Publisher(
        "container-toolkit", "NVIDIA's container toolkit",
        ("nvidia-container-*", "libnvidia-container*"),
        "https://nvidia.github.io/libnvidia-container/stable/deb/amd64",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
    ),
    Publisher(
        "cuda", "NVIDIA's CUDA",
        ("cuda-*", "nvidia-fabricmanager*", "nvlsm", "libnvsdm*"),
        "https://developer.download.nvidia.com/compute/cuda/repos/{system}/x86_64",
        "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/",
    ),
)  # fmt: skip


def packages(
    world: World, name: str, *, version: str = "", floor: str = "", hold: bool = False
) -> tuple[Step, ...]:
    """Return the steps for a package: the repository that the inventory names for it, and it.

    Returns () where the host's package manager is not known.
    """
    manager = manager_of(world)
    if not manager:
        return ()
    source = source_of(world, name)
    before = repository_steps(source, manager, why=f"{name} is taken from it") if source else ()
    where = "" if source else where_to_get(world, name)
    package = package_step(
        name, version=version, floor=floor, hold=hold, manager=manager, where=where
    )
    locker = (locker_step(),) if hold and manager == "dnf" else ()
    return (*before, *locker, package)


def source_of(world: World, package: str) -> Repository | None:
    """Return the first repository of the inventory that names a package, for this system."""
    fits = (one for one in world.host.repositories if _fits(world, one))
    return next(
        (one for one in fits if any(fnmatchcase(package, form) for form in one.packages)), None
    )


def _fits(world: World, repository: Repository) -> bool:
    system, release = _system(world)
    return not repository.systems or bool({system, f"{system} {release}"} & {*repository.systems})


def _system(world: World) -> tuple[str, str]:
    reading = world.facts[Identity]
    told = reading.value if isinstance(reading, Known) else Identity("")
    return told.os_id, told.os_version


def where_to_get(world: World, package: str) -> str:
    """Return which repository has a package, and the lines of the inventory that add it."""
    for one in PUBLISHERS:
        if any(fnmatchcase(package, form) for form in one.packages):
            return _advice(world, package, one)
    return f"{package} comes with the system: see the host's own repositories"


def _advice(world: World, package: str, publisher: Publisher) -> str:
    system, release = _system(world)
    word = f"{system or 'SYSTEM'}{release.replace('.', '') if system != 'rhel' else release[:1]}"
    uri = publisher.uri.format(system=word)
    if manager_of(world) == "dnf":
        uri = uri.replace("/deb/amd64", "/rpm/x86_64")
    return (
        f"{package} is in {publisher.what} repository ({publisher.source}); add it to hosts.yml:\n"
        f"repositories: {{{publisher.name}: {{uri: {uri}, suites: [/], "
        f"key: {{file: keys/{publisher.name}.asc, sha256: …}}, packages: [{package}]}}}}"
    )
