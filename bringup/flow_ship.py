"""Carry an image to hosts: only what each lacks, by a way that is shown first, compared after."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .core.errors import Blocked, ToolError, VerifyFailed
from .core.event import Event, Listen, ignore
from .core.reading import Absent, Known, Reading, Unknown
from .core.remote import Remote, Tunnels
from .core.script import compose, seconds_for, split
from .core.words import HostPath
from .edge import host_images, registry
from .edge.cargo_stream import Stream, file_stream, layers_stream
from .edge.engine import Engine
from .edge.registry import Registry, Stored
from .flow_image import keep_name
from .flow_pull import Login, logged_in, pull
from .flow_upload import load_parts, upload
from .image.facts import ImageFacts
from .image.record import kept_name
from .image.route import Cargo, HostImages, Route, Way, route

STAGE = "/var/lib/bringup/images"


@dataclass(frozen=True, slots=True)
class Shipping:
    """What a shipment needs: the engine that has the image, the hosts, and how many at once.

    `hosts` gives each host's remote by name; `connect` makes it anew after a line dropped.
    """

    source: Engine
    hosts: Mapping[str, Remote]
    folder: Path  # the state folder: the registry lives below it
    engine: tuple[str, ...] = ("docker",)
    engines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: int = 4
    way: Way | None = None  # the operator's word
    own_registry: str = ""  # host[:port]/path of the inventory
    login: Login | None = None
    stage: str = STAGE
    reopens: int = 5
    listen: Listen = ignore

    def engine_of(self, host: str) -> Engine:
        return Engine(self.hosts[host], self.engines.get(host, self.engine), host)


@dataclass(frozen=True, slots=True)
class Arrived:
    """How one host came out: by which route, what was really sent, and its image's ID."""

    route: Route
    identity: str = ""
    sent: int = 0
    seconds: float = 0.0
    error: ToolError | None = None


@dataclass(frozen=True, slots=True)
class Shipment:
    """All hosts of one shipment, by name."""

    cargo: Cargo
    arrived: Mapping[str, Arrived]

    @property
    def failed(self) -> tuple[Arrived, ...]:
        return tuple(a for a in self.arrived.values() if a.error is not None)


def plan_shipment(shipping: Shipping, cargo: Cargo) -> dict[str, Route]:
    """Return by which way each host would get the image; reads only."""
    with ThreadPoolExecutor(max_workers=max(1, shipping.limit * 4)) as pool:
        answers = {
            host: pool.submit(look_at, remote, shipping.engine_of(host).words, shipping.stage)
            for host, remote in shipping.hosts.items()
        }
        return {
            host: _route(shipping, host, cargo, answer.result()) for host, answer in answers.items()
        }


def _route(shipping: Shipping, host: str, cargo: Cargo, there: HostImages) -> Route:
    return route(
        host, cargo, there,
        tunnels=isinstance(shipping.hosts[host], Tunnels),
        own_registry=bool(shipping.own_registry),
        forced=shipping.way,
    )  # fmt: skip


def look_at(remote: Remote, engine: tuple[str, ...], stage: str) -> HostImages:
    """Return what a host's engine holds; one trip. A host that cannot be reached is unknown."""
    questions = host_images.asks(engine, HostPath(stage))
    nonce = secrets.token_hex(8)
    try:
        script = compose(questions, nonce=nonce)
        said = remote.read(script, seconds=seconds_for(questions))
    except ToolError as error:
        gone: Unknown = Unknown(error.message)
        return HostImages(gone, gone, gone, {})
    return host_images.parse(split(said.stdout, nonce=nonce), engine)


@contextlib.contextmanager
def loaded(
    shipping: Shipping, reference: str
) -> Iterator[tuple[Cargo, Registry | None, Stored | None]]:
    """Give an image's cargo, and the running registry that holds it, where there is one.

    Raises Blocked when the source does not have the image.
    """
    facts = _source_image(shipping.source, reference)
    name, _, tag = reference.rpartition(":")
    kept = kept_name(name, tag, facts.id)
    shipping.source.tag(facts.id, kept)
    if shipping.way is Way.ARCHIVE or shipping.own_registry or not registry.available():
        yield Cargo(facts, reference, kept), None, None
        return
    with registry.running(shipping.folder / "registry") as local:
        shipping.listen(Event(shipping.source.name, "push", f"{kept} to the local registry"))
        tag = kept.rpartition(":")[2]
        local.push(shipping.source, facts, name, tag)
        stored = local.stored(name, tag)
        yield local.cargo(facts, reference, kept, stored), local, stored


def _source_image(source: Engine, reference: str) -> ImageFacts:
    match source.image(reference):
        case Known(value=facts):
            return facts
        case Absent():
            raise Blocked(
                f"cannot ship {reference}: {source.name} does not have it",
                host=source.name,
                remedy=f"bringup image.build {reference.partition(':')[0]}",
            )
        case Unknown(why=why, evidence=evidence):
            raise Blocked(f"cannot ship {reference}: {why}", host=source.name, said=evidence)


def ship(shipping: Shipping, reference: str) -> Shipment:
    """Carry an image to every host and give it its name there; one host's failure is its own.

    Raises Blocked when the source does not have it, VerifyFailed when hosts end with other IDs.
    """
    with loaded(shipping, reference) as (cargo, local, stored), tempfile.TemporaryDirectory() as t:
        routes = plan_shipment(shipping, cargo)
        for planned in routes.values():
            shipping.listen(Event(planned.host, "ship", str(planned)))
        carrier = _Carrier(shipping, cargo, local, stored, Path(t))
        carrier.prepare(routes.values())
        with ThreadPoolExecutor(max_workers=max(1, shipping.limit)) as pool:
            jobs = {host: pool.submit(carrier.carry, routes[host]) for host in routes}
            arrived = {host: job.result() for host, job in jobs.items()}
    return Shipment(cargo, arrived)


@dataclass(slots=True)
class _Carrier:
    """Carries one cargo, host by host."""

    shipping: Shipping
    cargo: Cargo
    local: Registry | None
    stored: Stored | None
    scratch: Path
    archive: Stream | None = None

    def prepare(self, routes: Iterable[Route]) -> None:
        """Make once what several hosts will need: an archive, or the push to an own registry."""
        ways = {planned.way for planned in routes if not planned.trouble}
        if Way.ARCHIVE in ways:
            self.archive = save_archive(self.shipping.source, self.cargo, self.scratch)
        if Way.REGISTRY in ways:
            push_to(self.shipping, self.cargo)

    def carry(self, planned: Route) -> Arrived:
        """Carry to one host; whatever goes wrong is in the result."""
        began = time.monotonic()
        host, sent = planned.host, 0
        try:
            if planned.trouble:
                raise Blocked(
                    f"cannot ship {self.cargo.reference} to {host}: {planned.trouble}",
                    host=host,
                    remedy=f"bringup image.prune --host {host} frees what older images take"
                    if "free" in planned.trouble
                    else f"bringup probe --host {host}",
                )
            engine = self.shipping.engine_of(host)
            sent = self.send(planned, engine)
            identity = self.name(engine)
        except ToolError as error:
            return Arrived(planned, "", sent, time.monotonic() - began, error.at(host=host))
        self.say(host, f"{identity[:19]} is there", 1.0)
        return Arrived(planned, identity, sent, time.monotonic() - began)

    def send(self, planned: Route, engine: Engine) -> int:
        """Send what is missing; return the bytes that went out."""
        match planned.way:
            case Way.SAME | Way.NAMED:
                return 0
            case Way.LAYERS if self.stored is not None:
                stream = layers_stream(self.stored, planned.present, self.cargo.kept)
                return self.parts(planned, engine, stream)
            case Way.ARCHIVE if self.archive is not None:
                return self.parts(planned, engine, self.archive)
            case Way.PULL if self.local is not None:
                return self.pull(planned, engine, self.local)
            case Way.REGISTRY:
                reference = own_reference(self.shipping.own_registry, self.cargo)
                pull(engine, reference, self.folder("pull"), keep_as=self.cargo.kept, login=self.shipping.login,
                     on_state=lambda text: self.say(planned.host, text))  # fmt: skip
                return planned.sends
        raise ToolError(f"cannot ship by {planned.way.value}: there is no registry here")

    def parts(self, planned: Route, engine: Engine, stream: Stream) -> int:
        folder = self.folder(stream.key)
        sent = upload(
            engine.remote, stream, folder, self.progress(planned.host),
            reopens=self.shipping.reopens,
        )  # fmt: skip
        load_parts(engine, folder, packed=planned.way is Way.ARCHIVE)
        return sent

    def pull(self, planned: Route, engine: Engine, local: Registry) -> int:
        kept = self.cargo.kept.rpartition(":")
        pull(
            engine, f"localhost:PORT/{kept[0]}:{kept[2]}", self.folder("pull"),
            keep_as=self.cargo.kept, tunnel_to=local.port, reopens=self.shipping.reopens,
            on_state=lambda text: self.say(planned.host, text),
        )  # fmt: skip
        return planned.sends

    def folder(self, key: str) -> HostPath:
        return HostPath(f"{self.shipping.stage}/{self.cargo.facts.short}-{key}")

    def progress(self, host: str) -> Callable[[int, int], None]:
        def tell(done: int, total: int) -> None:
            self.say(host, f"{done} of {total} bytes", done / total if total else 1.0)

        return tell

    def say(self, host: str, text: str, share: float | None = None) -> None:
        self.shipping.listen(Event(host, "ship", text, share))

    def name(self, engine: Engine) -> str:
        """Compare the ID, then move the name; the old image keeps one of its own."""
        cargo = self.cargo
        there = engine.image(cargo.facts.id)
        if not isinstance(there, Known):
            raise VerifyFailed(
                f"cannot find {cargo.facts.id[:19]} on {engine.name} after it was sent",
                said=_said(there),
                remedy="run the same command again",
            )
        keep_name(engine, cargo.reference)
        engine.tag(cargo.facts.id, cargo.kept)
        engine.tag(cargo.facts.id, cargo.reference)
        return there.value.id


def _said(reading: Reading[ImageFacts]) -> str:
    return reading.why if isinstance(reading, Unknown) else ""


def own_reference(own: str, cargo: Cargo) -> str:
    return f"{own.rstrip('/')}/{cargo.kept}"


def push_to(shipping: Shipping, cargo: Cargo) -> None:
    """Push to the inventory's registry; layers that it has stay unsent."""
    reference = own_reference(shipping.own_registry, cargo)
    source = shipping.source
    source.tag(cargo.facts.id, reference)
    with logged_in(source, shipping.login, reference) as words:
        source.do(*words, "push", reference, why=f"cannot push {reference}", seconds=7200)


def save_archive(source: Engine, cargo: Cargo, scratch: Path) -> Stream:
    """Return a compressed archive of an image that this machine's engine has."""
    path = scratch / "image.tar.gz"
    source.save(cargo.kept, path)
    return file_stream(path, f"archive-{cargo.facts.short}")
