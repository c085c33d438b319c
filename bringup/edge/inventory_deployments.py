"""Deployments out of `deployments/*.yml`: which hosts play which role, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

from ..core.host import Deployment, Image, Mode, Model, Placement, Role, Services
from ..core.nearest import did_you_mean
from .inventory_roster import Fault
from .names import NAME, Names, PatternError, fold, natural
from .schema import DeploymentEntry, RoleEntry, Strict
from .yaml_marks import Document, Path

Workers: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Referable:
    """What a deployment may refer to. None: nobody can say, so nothing is refused."""

    names: Names | None
    gpu_counts: Mapping[str, int]
    images: Mapping[str, Image] | None
    engines: tuple[str, ...] | None


def faults(entry: DeploymentEntry, known: Referable) -> Iterator[Fault]:
    """Yield what a deployment lacks, and what it refers to that does not exist."""
    yield from _missing(entry)
    if entry.engine and known.engines is not None and entry.engine not in known.engines:
        yield ("engine",), f"no engine {entry.engine!r}{did_you_mean(entry.engine, known.engines)}"
    yield from _image_faults(entry, known)
    yield from _bundle_faults(entry, known)
    yield from _service_faults(entry, known)
    if not entry.roles:
        yield ("roles",), "names no role"
    players: dict[str, tuple[str, ...]] = {}
    for name, role in entry.roles.items():
        if not NAME.fullmatch(name):
            yield ("roles", name), "should be a name of letters, digits, dots and dashes"
        workers, found = _players(name, role, known)
        yield from found
        yield from _worker_faults(name, role, workers, known)
        players[name] = tuple(host for worker in workers for host in worker)
    yield from _shared_hosts(entry.roles, players)


def _missing(entry: DeploymentEntry) -> Iterator[Fault]:
    for key in ("engine", "model", "image"):
        if getattr(entry, key) is None:
            yield (key,), "is missing"
    model = entry.model.said() if entry.model else None
    for key in ("served_name", "path"):
        if model is not None and key not in model:
            yield ("model", key), "is missing"
    if entry.image is not None and "name" not in entry.image.said():
        yield ("image", "name"), "is missing"
    for name, role in entry.roles.items():
        if role.mode is None:
            yield ("roles", name, "mode"), "is missing"


def _image_faults(entry: DeploymentEntry, known: Referable) -> Iterator[Fault]:
    said = entry.image.said() if entry.image else {}
    name = said.get("name")
    if known.images is None or name is None or "reference" in said or entry.in_container is False:
        return
    if name not in known.images:
        hint = did_you_mean(name, known.images)
        yield ("image",), f"no image folder {name!r}{hint} (one from elsewhere: say its reference)"


def _bundle_faults(entry: DeploymentEntry, known: Referable) -> Iterator[Fault]:
    if entry.bundle is None:
        return
    for key in ("file", "to"):
        if getattr(entry.bundle, key) is None:
            yield ("bundle", key), "is missing"
    for number, word in enumerate(entry.bundle.to or ()):
        path: Path = ("bundle", "to", number)
        hosts, _, folder = word.partition(":")
        if not hosts or not folder.startswith("/"):
            yield path, f"should be a host and a folder, as b300-04:/srv/Kimi-K3, not {word!r}"
        elif known.names is not None:
            yield from _matched(path, [hosts], known.names)[1]


def _service_faults(entry: DeploymentEntry, known: Referable) -> Iterator[Fault]:
    """Yield what stands in the way of services that bringup is to run itself."""
    said = entry.services.said() if entry.services else {}
    images = [key for key in ("etcd_image", "nats_image", "frontend_image") if key in said]
    if images and "host" not in said:
        yield ("services", images[0]), "needs services.host: the host that is to run it"
    if "host" in said and known.names is not None:
        _, found = _matched(("services", "host"), [said["host"]], known.names)
        yield from found
    for image, key in (
        ("etcd_image", "etcd"),
        ("nats_image", "nats"),
        ("frontend_image", "frontend"),
    ):
        if image in said and key not in said:
            yield ("services", image), f"needs services.{key}: the URL that it is to answer at"


def _players(name: str, role: RoleEntry, known: Referable) -> tuple[Workers, list[Fault]]:
    """Return the hosts of each worker of a role."""
    path: Path = ("roles", name)
    if (role.hosts is None) == (role.workers is None):
        which = "both hosts and workers: keep one" if role.hosts else "neither hosts nor workers"
        return (), [(path, f"names {which}")]
    if known.names is None:
        return (), []
    if role.workers is not None:
        return _listed_workers(path, role.workers, known.names)
    hosts, found = _matched((*path, "hosts"), role.hosts or [], known.names)
    hosts = sorted(set(hosts), key=natural)
    size = role.nodes_per_worker or 1
    if len(hosts) % size:
        text = f"does not divide the number of hosts, {len(hosts)}: not {size}"
        found.append(((*path, "nodes_per_worker"), text))
    return tuple(tuple(hosts[at : at + size]) for at in range(0, len(hosts), size)), found


def _listed_workers(
    path: Path, workers: list[list[str]], names: Names
) -> tuple[Workers, list[Fault]]:
    matched = [
        _matched((*path, "workers", number), patterns, names)
        for number, patterns in enumerate(workers)
    ]
    return tuple(tuple(hosts) for hosts, _ in matched), [f for _, found in matched for f in found]


def _matched(path: Path, patterns: list[str], names: Names) -> tuple[list[str], list[Fault]]:
    hosts: list[str] = []
    found: list[Fault] = []
    for pattern in patterns:
        try:
            hosts += names.match(pattern)
        except PatternError as error:
            found.append((path, str(error)))
    return hosts, found if hosts or found else [(path, "names no host")]


def _worker_faults(
    name: str, role: RoleEntry, workers: Workers, known: Referable
) -> Iterator[Fault]:
    hosts = [host for worker in workers for host in worker]
    for host in sorted({host for host in hosts if hosts.count(host) > 1}, key=natural):
        yield ("roles", name), f"names {host} twice"
    if role.workers is not None and role.nodes_per_worker is not None:
        yield ("roles", name, "nodes_per_worker"), "goes with hosts; workers says it by itself"
    if role.workers is not None and not role.workers:
        yield ("roles", name, "workers"), "is empty"
    for host in hosts:
        count = known.gpu_counts.get(host)
        beyond = [gpu for gpu in role.gpus or () if count is not None and gpu >= count]
        if beyond:
            yield (
                ("roles", name, "gpus"),
                f"{host} has {count} GPUs, counted from 0: there is no {beyond[0]}",
            )


def _shared_hosts(
    roles: Mapping[str, RoleEntry], players: Mapping[str, tuple[str, ...]]
) -> Iterator[Fault]:
    """Yield hosts in two roles that would use the same GPUs."""
    for one, other in combinations(roles, 2):
        both = sorted(set(players[one]) & set(players[other]), key=natural)
        if both and _overlap(roles[one].gpus, roles[other].gpus):
            yield (
                ("roles", other),
                (
                    f"{fold(both)} plays role {one!r} as well: "
                    "take it out of one, or give each role its own gpus"
                ),
            )


def _overlap(one: list[int] | None, other: list[int] | None) -> bool:
    """Return whether two choices of GPUs meet; None chooses all."""
    return one is None or other is None or bool(set(one) & set(other))


def build(name: str, document: Document, entry: DeploymentEntry, known: Referable) -> Deployment:
    """Return a deployment. Only for an entry without faults."""
    said = entry.said()
    switches = {key: said[key] for key in ("in_container", "accept_tcp") if key in said}
    return Deployment(
        name,
        entry.engine or "",
        Model(**_said(entry.model)),
        _image(document, entry, known),
        tuple(_role(each, role, document, known) for each, role in entry.roles.items()),
        Services(**_said(entry.services)),
        bundle=_bundle(entry, known),
        knobs=entry.knobs or {},
        knob_origins=document.origins(("knobs",), entry.knobs),
        origin=document.origin(()),
        **switches,
    )


def _said(entry: Strict | None) -> dict[str, Any]:  # Any: values are what the keys hold
    return entry.said() if entry is not None else {}


def _bundle(entry: DeploymentEntry, known: Referable) -> Placement | None:
    """Return where the bundle goes, host patterns unfolded."""
    if entry.bundle is None or known.names is None:
        return None
    words = [word.partition(":") for word in entry.bundle.to or ()]
    to = ((host, folder) for hosts, _, folder in words for host in known.names.match(hosts))
    return Placement(entry.bundle.file or "", tuple(dict.fromkeys(to)))


def _image(document: Document, entry: DeploymentEntry, known: Referable) -> Image:
    """Return what the image folder promises, with what the deployment says about it on top."""
    said = _said(entry.image)
    folder = (known.images or {}).get(said["name"])
    return replace(folder or Image(said["name"], origin=document.origin(("image",))), **said)


def _role(name: str, role: RoleEntry, document: Document, known: Referable) -> Role:
    path: Path = ("roles", name)
    return Role(
        name,
        Mode(role.mode),
        _players(name, role, known)[0],
        gpus=tuple(role.gpus or ()),
        max_context=role.max_context,
        knobs=role.knobs or {},
        knob_origins=document.origins((*path, "knobs"), role.knobs),
        flags=role.flags or {},
        env=role.env or {},
        origin=document.origin(path),
    )
