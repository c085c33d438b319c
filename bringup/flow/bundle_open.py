"""Find what a bundle verb speaks of: folders here or on hosts, cards, frontends, their logs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from ..bundle.frontend_process import container_log, file_log, pod_log
from ..core.errors import ToolError, UsageError
from ..core.event import Listen
from ..core.host import Deployment, Host, Inventory, Login
from ..core.reading import Known, Reading, Unknown
from ..core.remote import Dials, Remote
from ..core.rules import Finding
from ..core.words import Word
from ..edge.discovery import read_etcd, read_folder
from ..edge.etcd import Etcd
from ..edge.http import Opener, direct
from ..edge.local import LocalRemote
from ..edge.site import Site, site_of
from ..options.bundle import DiscoveryPlace, FrontendSpot
from ..options.hosts import HostSelection, Workspace
from ..readiness.cards import Announced
from .bundle import Source, read_here, read_there
from .bundle_doctor import Frontend, examine, find_frontend, gather, look_there, read_log
from .bundle_push import PushTarget
from .open import choose, read_inventory, tools_for
from .types import Tools

HERE = Host("here", Login("localhost"))


@dataclass(frozen=True, slots=True)
class Spot:
    """A folder as the operator names it: PATH here, or HOSTS:PATH of the inventory."""

    hosts: str
    path: str


def spot(word: str) -> Spot:
    """Return the folder that a word names. A colon before any slash parts hosts from a path."""
    hosts, colon, path = word.partition(":")
    if not colon or "/" in hosts:
        return Spot("", word)
    if not path.startswith("/"):
        raise UsageError(
            f"cannot use {word!r}: the path on a host has to be absolute",
            remedy="write it as b300-04:/raid/models/Kimi-K3",
        )
    return Spot(hosts, path)


@contextmanager
def opened(
    workspace: Workspace, listen: Listen, *, needed: bool
) -> Iterator[tuple[Inventory, Tools]]:
    """Yield the inventory and its tools. Where no host is needed, no inventory is read."""
    known = read_inventory(workspace.inventory) if needed else Inventory("", {}, {}, {}, {})
    with tools_for(known, workspace, listen) as tools:
        yield known, tools


def hosts_at(known: Inventory, pattern: str) -> tuple[Host, ...]:
    """Return the hosts that a pattern names."""
    return choose(known, HostSelection(host=(pattern,)))


def one_site(known: Inventory, tools: Tools, pattern: str) -> Site:
    """Return the one host that a pattern names as a site; "" is this machine."""
    if not pattern:
        return site_of(HERE, LocalRemote(HERE))
    hosts = hosts_at(known, pattern)
    if len(hosts) != 1:
        names = ", ".join(host.name for host in hosts)
        raise UsageError(f"cannot look at one host: {pattern!r} names {names}")
    return site_of(hosts[0], tools.fleet.remote(hosts[0].name))


def read_source(word: str, known: Inventory, tools: Tools) -> Source:
    """Read the model folder that a word names."""
    where = spot(word)
    if not where.hosts:
        return read_here(Path(where.path), listen=tools.listen)
    return read_there(one_site(known, tools, where.hosts), where.path, listen=tools.listen)


def placed(word: str, known: Inventory, tools: Tools) -> Iterator[tuple[Host, str, Remote]]:
    """Yield every folder that a word names, host patterns unfolded: here, or one a host."""
    where = spot(word)
    if not where.hosts:
        yield HERE, str(Path(where.path).absolute()), LocalRemote(HERE)
        return
    for host in hosts_at(known, where.hosts):
        yield host, where.path, tools.fleet.remote(host.name)


def targets(words: tuple[str, ...], known: Inventory, tools: Tools) -> tuple[PushTarget, ...]:
    """Return every folder that the words name, host patterns unfolded."""
    return tuple(PushTarget(*found) for word in words for found in placed(word, known, tools))


def deployment_of(known: Inventory, name: str) -> Deployment | None:
    """Return a deployment by name, or None for no name. Raises UsageError for an unknown one."""
    return known.deployment(name) if name else None


DIRECT_S = 2.0
"""Most seconds to try a service straight, before a host's connection is used."""


def way_to_services(tools: Tools, deployment: Deployment | None, host: str = "") -> Opener:
    """Return how to reach services: straight where that works, else from a host of ours.

    The host is the one named, or the first of the deployment.
    """
    roles = deployment.roles if deployment else ()
    names = [host] if host else [name for role in roles for name in role.hosts]

    def opener(place: str, port: int, seconds: float) -> socket.socket:
        if not names:
            return direct(place, port, seconds)
        try:
            return direct(place, port, min(seconds, DIRECT_S))
        except OSError:
            remote = tools.fleet.remote(names[0])
            if not isinstance(remote, Dials):
                raise
            return cast("socket.socket", remote.dial(place, port, seconds))

    return opener


def announcer(
    said: DiscoveryPlace, deployment: Deployment | None, opener: Opener = direct
) -> Callable[[], Announced]:
    """Return what reads the model cards: from etcd, from a folder of file discovery.

    Raises UsageError when nobody said where cards are.
    """
    endpoints = said.etcd or (deployment.services.etcd if deployment else ())
    if said.discovery:
        return partial(read_folder, Path(said.discovery))
    if endpoints:
        return partial(read_etcd, Etcd(tuple(endpoints), opener=opener))
    raise UsageError(
        "cannot look at what workers announce: no etcd endpoint is given",
        remedy="add --deployment NAME, or --etcd http://HOST:2379 as the workers have it",
    )


def _inside(where: FrontendSpot, near: Site) -> Site:
    """Return the inside of the frontend's container or pod, or the host itself."""
    if where.pod:
        return near.pod(where.pod, namespace=where.namespace, container=where.container)
    if not where.container:
        return near
    return near.container(where.container, engine=tuple(where.engine.split()))


def _log(where: FrontendSpot, near: Site) -> str:
    """Return the frontend's log. Raises ToolError where there is no way to it."""
    words = _log_words(where)
    if not words:
        raise ToolError(
            "cannot read the frontend's log: nobody said where it is",
            remedy="add --log FILE, --container NAME or --pod deployment/NAME",
        )
    return read_log(near, words)


def _log_words(where: FrontendSpot) -> tuple[Word, ...]:
    if where.log:
        return file_log(where.log)
    if where.pod:
        return pod_log(where.pod, namespace=where.namespace, container=where.container)
    if not where.container:
        return ()
    return container_log(where.container, engine=tuple(where.engine.split()))


def settled(said: Frontend, site: Site) -> Frontend:
    """Return a frontend's settings: what the operator said, else what its process shows."""
    try:
        found: Reading[Frontend] = find_frontend(site, said.url)
    except ToolError as error:
        found = Unknown(error.message)
    if not isinstance(found, Known):
        why = found.why if isinstance(found, Unknown) else found.evidence
        namespace = said.namespace if isinstance(said.namespace, Known) else Unknown(why)
        return Frontend(said.url, said.version, said.model_path, namespace, said.processor)
    seen = found.value
    return Frontend(
        said.url,
        said.version or seen.version,
        said.model_path or seen.model_path,
        said.namespace if isinstance(said.namespace, Known) else seen.namespace,
        seen.processor,
        seen.discovery,
    )


def said_of(served: Deployment | None, name: str, frontend: str) -> tuple[str, str]:
    """Return the model's name and the frontend's URL: as said, else as the deployment has them."""
    model = name or (served.model.served_name if served else "")
    url = frontend or (served.services.frontend if served else "")
    for what, value, flag in (
        ("model", model, "--name"),
        ("frontend", url, "--frontend http://HOST:8000"),
    ):
        if not value:
            raise UsageError(
                f"cannot examine a frontend: no {what} is named",
                remedy=f"add --deployment NAME, or {flag}",
            )
    return model, url.rstrip("/")


def diagnose_frontend(
    model: str,
    said: Frontend,
    where: FrontendSpot,
    near: Site,
    announced: Callable[[], Announced],
    *,
    opener: Opener = direct,
) -> tuple[Finding, ...]:
    """Gather all that can be seen of a frontend from where it runs, and return the diagnosis."""
    inside = _inside(where, near)
    evidence = gather(
        model,
        settled(said, inside),
        announced=announced,
        look=look_there(inside),
        log=lambda: _log(where, near),
        opener=opener,
    )
    return examine(evidence)
