"""Open what a verb works with: the inventory, the hosts it is about, a fleet, the tools."""

from __future__ import annotations

import getpass
import os
import pwd
import secrets
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__
from ..core.errors import UsageError
from ..core.event import Event, Listen
from ..core.host import Deployment, Host, Inventory
from ..core.remote import Traffic
from ..edge.store import Store
from ..options.hosts import HostSelection, Workspace
from .types import Order, Tools


def operator() -> str:
    """Return who runs this, from where: for locks, receipts and logs.

    Raises UsageError for a user without an entry, as in a container run under a bare number.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise UsageError(
            f"cannot tell who runs this: no user has the number {os.getuid()}",
            remedy="run as a user in /etc/passwd; SSH asks the same",
        ) from None
    return f"{getpass.getuser()}@{socket.gethostname()}"


def moment() -> str:
    """Return the time now: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_inventory(folder: str) -> Inventory:
    """Read the inventory with the knobs and engines that there are; raises InventoryError."""
    from ..edge.inventory import load
    from ..engines import ENGINES
    from ..engines.knobs import KNOBS

    path = Path(folder or "inventory")
    return load(path, images=images_beside(folder), knobs=KNOBS, engines=tuple(ENGINES))


def images_beside(folder: str) -> Path | None:
    """Return the images' folder: beside the inventory, else in the working directory."""
    for place in (Path(folder or "inventory").parent / "images", Path("images")):
        if place.is_dir():
            return place
    return None


def _templates() -> Path:
    """Templates lie in the working directory, else where bringup's own are."""
    own = Path("templates")
    return own if own.is_dir() else Path(__file__).parents[2] / "templates"


def choose(inventory: Inventory, wanted: HostSelection) -> tuple[Host, ...]:
    """Return the chosen hosts; raises UsageError where none was named or a name is unknown."""
    from ..edge.inventory import select

    return select(
        inventory,
        hosts=wanted.host,
        group=wanted.group,
        limit=wanted.limit,
        exclude=wanted.exclude,
    )


def deployments_for(
    inventory: Inventory, hosts: Iterable[Host], name: str = "", *, strict: bool = True
) -> dict[str, Deployment]:
    """Return the deployment of every host and of its peers.

    Raises UsageError for an unknown name, and where a host is in several and none was named; such
    a host is left out when not strict.
    """
    if name:
        inventory.deployment(name)
    found: dict[str, Deployment] = {}
    for host in hosts:
        mine = [d for d in inventory.deployments_of(host.name) if name in ("", d.name)]
        if len(mine) > 1 and not strict:
            continue
        if len(mine) > 1:
            names = ", ".join(deployment.name for deployment in mine)
            raise UsageError(
                f"cannot tell what {host.name} is to serve: it is in {names}",
                host=host.name,
                remedy=f"name one, as in --deployment {mine[0].name}",
            )
        for deployment in mine:
            found |= dict.fromkeys((h for role in deployment.roles for h in role.hosts), deployment)
    return found


def state_folder(workspace: Workspace) -> Path:
    """Return where facts and receipts are kept."""
    return Path(workspace.state or os.environ.get("BRINGUP_STATE", ".bringup"))


@contextmanager
def tools_for(inventory: Inventory, workspace: Workspace, listen: Listen) -> Iterator[Tools]:
    """Yield the tools for an inventory; every connection is closed at the end."""
    from ..edge.render import Renderer
    from ..edge.ssh import SshFleet, SshOptions

    known = Path(workspace.known_hosts).expanduser() if workspace.known_hosts else None
    options = SshOptions(known_hosts=known, accept_new=workspace.accept_new)
    who = operator()
    with SshFleet(inventory.hosts, options) as fleet:
        yield Tools(
            fleet=fleet,
            renderer=Renderer(_templates()),
            store=Store(state_folder(workspace)),
            moment=moment,
            nonce=lambda: secrets.token_hex(6),
            operator=who,
            version=__version__,
            listen=listen,
        )


def spent() -> dict[str, Traffic]:
    """Return what all connections closed since the last time have cost, host by host."""
    from ..edge import ledger

    return ledger.take()


@contextmanager
def _writable(workspace: Workspace, listen: Listen) -> Iterator[Workspace]:
    folder = state_folder(workspace)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        listen(Event("", "state", f"nothing is kept: cannot write {folder}: {error.strerror}"))
        with tempfile.TemporaryDirectory(prefix="bringup-") as own:
            yield replace(workspace, state=own)
        return
    yield workspace


@contextmanager
def opened(
    workspace: Workspace,
    wanted: HostSelection,
    listen: Listen,
    *,
    deployment: str = "",
    deep: bool = False,
) -> Iterator[tuple[Tools, Order]]:
    """Yield the tools and an order that only looks, for the chosen hosts.

    A host in several deployments of which none was named is looked at by itself. Where the state
    folder cannot be written, what was seen is kept for this run alone.
    """
    inventory = read_inventory(workspace.inventory)
    hosts = choose(inventory, wanted)
    served = deployments_for(inventory, hosts, deployment, strict=False)
    with _writable(workspace, listen) as kept, tools_for(inventory, kept, listen) as tools:
        yield tools, Order(inventory, hosts, served, check=True, deep=deep)


def keep_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet; raises UsageError where it does."""
    from ..core.errors import UsageError
    from ..edge.store import write_atomic

    if path.exists():
        raise UsageError(f"cannot write {path}: it exists", remedy="name another file, or move it")
    write_atomic(path, text.encode())
