"""Open what the image verbs work with: folders, engines here and on hosts, the state."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError
from ..core.event import Listen
from ..core.host import Host, Inventory, Login
from ..core.remote import Fleet, Remote
from ..core.words import Secret
from ..edge.engine import Builder, Engine
from ..edge.image_file import ImageFolder, read_image, read_images
from ..edge.image_store import ImageStore
from ..edge.local import LocalRemote
from ..edge.pip import Index
from ..options.hosts import HostSelection, Workspace
from ..options.images import Building, ImagePlace, Packages
from .image import BuildOrder
from .image_flags import rendered_flags, strange_flags
from .open import choose, moment, operator, read_inventory, tools_for
from .pull import RegistryLogin

HERE = "controller"


@dataclass(frozen=True, slots=True)
class Opened:
    """What is open during a verb."""

    inventory: Inventory | None
    hosts: tuple[Host, ...]
    fleet: Fleet | None
    builder: Engine
    store: ImageStore
    words: tuple[str, ...]

    @property
    def remotes(self) -> dict[str, Remote]:
        assert self.fleet is not None
        return {host.name: self.fleet.remote(host.name) for host in self.hosts}

    @property
    def engines(self) -> dict[str, Engine]:
        """The engines of the chosen hosts; docker there is the host's own."""
        return {name: Engine(remote, ("docker",), name) for name, remote in self.remotes.items()}


def folder_of(images: str, name: str) -> ImageFolder:
    """Return one image by name; raises UsageError or InventoryError."""
    return read_image(Path(images) / name)


def folders_of(images: str, name: str) -> tuple[ImageFolder, ...]:
    """Return the named image, or all there are; raises UsageError when there are none."""
    found = (folder_of(images, name),) if name else read_images(Path(images))
    if not found:
        raise UsageError(f"cannot find an image below {images}/", remedy="make images/NAME/")
    return found


def engine_here(words: str) -> Engine:
    """Return the engine of this machine; `words` start its commands, as ``docker -H unix://…``."""
    return Engine(LocalRemote(Host(HERE, Login(""))), tuple(shlex.split(words)), HERE)


def state_of(state: str) -> Path:
    return Path(state or os.environ.get("BRINGUP_STATE", ".bringup"))


@contextmanager
def opened(
    place: ImagePlace, workspace: Workspace, listen: Listen, *, hosts: HostSelection | None = None
) -> Iterator[Opened]:
    """Yield engines and stores; lines to hosts are opened only where some are meant."""
    store = ImageStore(state_of(workspace.state))
    words = tuple(shlex.split(place.engine))
    if hosts is None and not place.on:
        yield Opened(None, (), None, engine_here(place.engine), store, words)
        return
    inventory = read_inventory(workspace.inventory)
    chosen = choose(inventory, hosts) if hosts is not None else ()
    with tools_for(inventory, workspace, listen) as tools:
        builder = engine_here(place.engine)
        if place.on:
            builder = Engine(tools.fleet.remote(place.on), ("docker",), place.on)
        yield Opened(inventory, chosen, tools.fleet, builder, store, words)


def order_for(
    yard: Opened, image: ImageFolder, how: Building, *, inventory: str, listen: Listen
) -> BuildOrder:
    """Return the order for a build; the deployments of the image say which flags it must know."""
    known = yard.inventory or inventory_if_any(inventory)
    name = image.recipe.name
    return BuildOrder(
        engine=yard.builder,
        index=index_of(how.packages),
        store=yard.store,
        moment=moment,
        operator=operator(),
        builder=builder_named(how.builder),
        fetch_wheels=how.fetch_wheels,
        network=how.network,
        force=how.force,
        flags=strange_flags(known, name) if known else {},
        rendered_flags=rendered_flags(known, name) if known else (),
        listen=listen,
    )


def inventory_if_any(folder: str) -> Inventory | None:
    """Return the inventory where there is one: an image can be built without."""
    return read_inventory(folder) if (Path(folder) / "hosts.yml").is_file() else None


def builder_named(name: str) -> Builder | None:
    """Return a builder by name, None for the best there is; raises UsageError."""
    if not name:
        return None
    try:
        return Builder(name)
    except ValueError:
        known = ", ".join(builder.value for builder in Builder)
        raise UsageError(f"cannot build by {name!r}", remedy=f"one of: {known}") from None


def index_of(packages: Packages) -> Index:
    folder = Path(packages.wheels).resolve() if packages.wheels else None
    return Index(wheels=folder, url=packages.index)


def registry_login(variable: str, environment: Mapping[str, str]) -> RegistryLogin | None:
    """Return the login that an environment variable holds as user:password; "" means none."""
    if not variable:
        return None
    user, colon, password = environment.get(variable, "").partition(":")
    if not (user and colon and password):
        raise UsageError(
            f"cannot log in to the registry: {variable} does not hold user:password",
            remedy=f"export {variable} from your secret store, then run again",
        )
    return RegistryLogin(user, Secret(password))
