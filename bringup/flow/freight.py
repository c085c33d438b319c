"""Images that a run carries to its hosts: looked up once, made ready once, carried side by side."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.host import Deployment, Host
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.steps import Carry
from ..edge.engine import Engine
from ..edge.image_file import ImageFolder, read_image
from ..edge.image_store import ImageStore
from ..edge.registry import running
from ..image.context import LABEL
from ..image.route import Cargo, HostImages, Route
from ..image.wanted import Offer
from .carry import Carrier
from .image_open import registry_login
from .load import loaded, uses_registry
from .ship import look_at, routed
from .ship_types import Shipping
from .types import Tools


@dataclass
class ImageFreight:
    """The images of one inventory (flow.types.Freight). Safe for threads."""

    shipping: Shipping
    images: Path | None
    stack: ExitStack
    is_building: bool = False  # what is missing will be built before this run in earnest
    login_from: str = ""  # environment variable with the login of the own registry
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _offers: dict[str, Offer] = field(default_factory=dict)
    _folders: dict[str, ImageFolder] = field(default_factory=dict)
    _cargos: dict[str, Cargo] = field(default_factory=dict)
    _carriers: dict[str, Carrier] = field(default_factory=dict)
    _looks: dict[str, HostImages] = field(default_factory=dict)
    _engines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(4))

    def offer(self, deployment: Deployment) -> Offer | None:
        """Return the image of a deployment; None where it is not ours, or held to a digest."""
        folder = self.folder(deployment)
        if folder is None:
            return None
        with self._lock:
            name = folder.recipe.name
            if name not in self._offers:
                self._offers[name] = self._offer(folder)
            return self._offers[name]

    def folder(self, deployment: Deployment) -> ImageFolder | None:
        """Return the folder of a deployment's image where the deployment runs what it makes."""
        image, images = deployment.image, self.images
        if images is None or image.digest or not deployment.in_container:
            return None
        if not (images / image.name / "image.yml").is_file():
            return None
        with self._lock:
            if image.name not in self._folders:
                self._folders[image.name] = read_image(images / image.name)
        folder = self._folders[image.name]
        return folder if folder.recipe.reference == image.reference else None

    def _offer(self, folder: ImageFolder) -> Offer:
        context, recipe = folder.context.digest, folder.recipe
        return Offer(
            recipe.name, recipe.reference, context, self._built(folder, context), self.is_building
        )

    def _built(self, folder: ImageFolder, context: str) -> Reading[str]:
        """Return the ID that was built from a context: by record, else by the engine's label."""
        for record in ImageStore(self.shipping.folder).records(folder.recipe.name):
            if record.context == context:
                return Known(record.id, f"built {record.at}")
        there = self.shipping.source.image(folder.recipe.reference)
        if isinstance(there, Unknown):
            return there
        if isinstance(there, Known) and there.value.labels.get(LABEL) == context:
            return Known(there.value.id, there.value.created)
        return Absent("no record of a build")

    def foresee(self, host: Host, offer: Offer, engine: str) -> Route:
        """Return by which way a host's engine would get an image; one trip, nothing is copied."""
        with self._lock:
            self._engines[host.name] = (engine,)
            if offer.reference not in self._cargos:
                self._cargos[offer.reference] = self._estimate(offer)
            shipping = self.shipping
        there = look_at(shipping.hosts[host.name], (engine,), shipping.stage, root=host.root)
        self._looks[host.name] = there
        return routed(shipping, host.name, self._cargos[offer.reference], there).route

    def _estimate(self, offer: Offer) -> Cargo:
        assert isinstance(offer.built, Known)
        shipping = self._based(offer.name)
        with loaded(shipping, offer.reference, offer.built.value, only_look=True) as ready:
            return ready.cargo

    def _based(self, name: str) -> Shipping:
        """Return the shipping of one image; the registry is started once, for all of them."""
        if self.shipping.local is None and uses_registry(self.shipping):
            local = self.stack.enter_context(running(self.shipping.folder / "registry"))
            self.shipping = replace(self.shipping, local=local)
        base = self._folders[name].recipe.base.pinned
        return replace(self.shipping, base=base, engines=self._engines)

    def carry(self, host: Host, action: Carry) -> None:
        """Carry an image to a host; the first that comes makes it ready for all."""
        with self._slots:
            with self._lock:
                carrier = self._carriers.get(action.reference) or self._ready(action)
                self._carriers[action.reference] = carrier
                there = self._looks[host.name]
                planned = routed(carrier.shipping, host.name, carrier.cargo, there)
                carrier.prepare([planned])
            arrived = carrier.carry(planned)
        if arrived.error is not None:
            raise arrived.error

    def _ready(self, action: Carry) -> Carrier:
        login = registry_login(self.login_from, os.environ)
        shipping = replace(self._based(action.name), login=login)
        scratch = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        ready = self.stack.enter_context(loaded(shipping, action.reference, action.identity))
        return Carrier(shipping, ready.cargo, ready.local, ready.stored, scratch, has_locks=True)


@contextmanager
def freight_for(
    tools: Tools,
    hosts: Iterable[Host],
    source: Engine,
    images: Path | None,
    *,
    registry: str = "",
    login_from: str = "",
    building: bool = False,
) -> Iterator[ImageFreight]:
    """Give the images in a folder for the time of a run; `source` is the engine that has them."""
    served = tuple(hosts)
    with ExitStack() as stack:
        shipping = Shipping(
            source=source,
            hosts={host.name: tools.fleet.remote(host.name) for host in served},
            folder=tools.store.folder,
            engines={},
            roots={host.name: host.root for host in served},
            own_registry=registry,
            listen=tools.listen,
        )
        yield ImageFreight(shipping, images, stack, building, login_from)
