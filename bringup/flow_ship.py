"""Carry an image to hosts: only what each lacks, by a way that is shown first, compared after."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .core.errors import Blocked, ToolError, VerifyFailed
from .core.event import Event, Listen, ignore
from .core.reading import Absent, Known, Unknown
from .core.remote import Remote, Tunnels
from .core.script import compose, seconds_for, split
from .core.words import HostPath
from .edge import cargo_stream, host_images, registry
from .edge.cargo_stream import Stream, file_stream, layers_stream
from .edge.engine import Engine
from .edge.registry import Registry, Stored
from .flow_pull import Login, logged_in, pull
from .flow_upload import Finish, Source, finish, upload
from .image.facts import ImageFacts
from .image.record import kept_name
from .image.route import Cargo, HostImages, Route, Way, human, route

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
    roots: Mapping[str, str] = field(default_factory=dict)  # `root:` of hosts that have one
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


@dataclass(frozen=True, slots=True)
class Planned:
    """One host before its part of a shipment: what it holds, and by which way the image comes."""

    there: HostImages
    route: Route

    @property
    def images(self) -> tuple[ImageFacts, ...]:
        return self.there.images.value if isinstance(self.there.images, Known) else ()


def plan_shipment(shipping: Shipping, cargo: Cargo) -> dict[str, Planned]:
    """Return by which way each host would get the image; reads only, a trip a host."""
    with ThreadPoolExecutor(max_workers=max(1, shipping.limit * 4)) as pool:
        answers = {
            host: pool.submit(
                look_at,
                remote,
                shipping.engine_of(host).words,
                shipping.stage,
                root=shipping.roots.get(host, "/"),
            )
            for host, remote in shipping.hosts.items()
        }
        return {
            host: _planned(shipping, host, cargo, answer.result())
            for host, answer in answers.items()
        }


def _planned(shipping: Shipping, host: str, cargo: Cargo, there: HostImages) -> Planned:
    found = route(
        host, cargo, there,
        tunnels=isinstance(shipping.hosts[host], Tunnels),
        own_registry=bool(shipping.own_registry),
        forced=shipping.way,
    )  # fmt: skip
    return Planned(there, found)


def look_at(remote: Remote, engine: tuple[str, ...], stage: str, *, root: str = "/") -> HostImages:
    """Return what a host's engine holds; one trip. A host that cannot be reached is unknown."""
    questions = host_images.asks(engine, HostPath(stage))
    nonce = secrets.token_hex(8)
    try:
        script = compose(questions, nonce=nonce, root=root)
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
        _push(shipping.source, local, facts, name, tag)
        stored = local.stored(name, tag)
        yield local.cargo(facts, reference, kept, stored), local, stored


def _push(source: Engine, local: Registry, facts: ImageFacts, name: str, tag: str) -> None:
    """Push to the controller's registry, through a tunnel where the image is on another host."""
    if not isinstance(source.remote, Tunnels):
        return local.push(source, facts, name, tag)
    # The same port on both ends keeps the name under which the engine remembers what it pushed.
    with source.remote.tunnel(to_port=local.port, host_port=local.port) as tunnel:
        return local.push(source, facts, name, tag, port=tunnel.port)


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

    Raises Blocked when the source does not have the image.
    """
    with loaded(shipping, reference) as (cargo, local, stored), tempfile.TemporaryDirectory() as t:
        plans = plan_shipment(shipping, cargo)
        for planned in plans.values():
            shipping.listen(Event(planned.route.host, "ship", str(planned.route)))
        carrier = _Carrier(shipping, cargo, local, stored, Path(t))
        carrier.prepare(plans.values())
        with ThreadPoolExecutor(max_workers=max(1, shipping.limit)) as pool:
            jobs = {host: pool.submit(carrier.carry, plan) for host, plan in plans.items()}
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
    packing: Source = Source.GZIP

    def prepare(self, plans: Collection[Planned]) -> None:
        """Make once what several hosts will need: an archive, or the push to an own registry."""
        able = [planned for planned in plans if not planned.route.trouble]
        packed = [planned.there for planned in able if planned.route.way is Way.ARCHIVE]
        if packed:
            modern = all(there.zstd for there in packed) and shutil.which("zstd") is not None
            self.packing = Source.ZSTD if modern else Source.GZIP
            self.archive = save_archive(
                self.shipping.source, self.cargo, self.scratch, self.packing.value
            )
        if any(planned.route.way is Way.REGISTRY for planned in able):
            push_to(self.shipping, self.cargo)

    def carry(self, planned: Planned) -> Arrived:
        """Carry to one host; whatever goes wrong is in the result."""
        began, host = time.monotonic(), planned.route.host
        sent, identity = Sent(0, HostPath("/nowhere"), Source.NOTHING), ""
        try:
            refuse_trouble(self.cargo, planned.route)
            if planned.route.way is not Way.SAME:
                sent = self.send(planned)
                identity = self.finish(planned, sent)
            else:
                identity = self.cargo.facts.id
            if identity != self.cargo.facts.id:
                raise other_identity(self.cargo, host, identity)
        except ToolError as error:
            return Arrived(
                planned.route, identity, sent.count, time.monotonic() - began, error.at(host=host)
            )
        self.say(host, f"{self.cargo.facts.short} is there as {self.cargo.reference}", 1.0)
        return Arrived(planned.route, identity, sent.count, time.monotonic() - began)

    def send(self, planned: Planned) -> Sent:
        """Send what is missing."""
        way, host = planned.route.way, planned.route.host
        match way:
            case Way.NAMED:
                return Sent(0, self.folder("none"), Source.NOTHING, self.cargo.kept)
            case Way.LAYERS if self.stored is not None:
                stream = layers_stream(self.stored, planned.route.present, self.cargo.kept)
                return self.parts(planned, stream, Source.PARTS)
            case Way.ARCHIVE if self.archive is not None:
                return self.parts(planned, self.archive, self.packing)
            case Way.PULL if self.local is not None:
                name, _, tag = self.cargo.kept.rpartition(":")
                return self.pull(planned, f"localhost:PORT/{name}:{tag}", self.local.port)
            case Way.REGISTRY:
                return self.pull(planned, own_reference(self.shipping.own_registry, self.cargo), 0)
        raise ToolError(
            f"cannot ship to {host} by {way.value}: the controller has no registry",
            remedy=f"apt-get install {registry.PROGRAM}, or ship by --way archive",
        )

    def parts(self, planned: Planned, stream: Stream, source: Source) -> Sent:
        """Send what needs to resume as parts, and a little along with the last command."""
        if stream.size <= cargo_stream.PART and source is Source.PARTS:
            body = b"".join(part.body for part in stream.parts())
            return Sent(len(body), self.folder("none"), Source.HERE, body=body)
        folder, host = self.folder(stream.key), planned.route.host
        there = planned.there.staged.get(folder.path.rpartition("/")[2], frozenset())
        count = upload(
            self.shipping.hosts[host], stream, folder, there, self.progress(host),
            reopens=self.shipping.reopens,
        )  # fmt: skip
        return Sent(count, folder, source)

    def pull(self, planned: Planned, reference: str, tunnel_to: int) -> Sent:
        host, folder = planned.route.host, self.folder("pull")
        engine = self.shipping.engine_of(host)
        named = pull(
            engine, reference, folder,
            tunnel_to=tunnel_to, login=self.shipping.login, reopens=self.shipping.reopens,
            on_state=lambda text: self.say(host, text),
        )  # fmt: skip
        engine.tag(named, self.cargo.kept)
        engine.untag(named)
        return Sent(planned.route.sends, folder, Source.NOTHING)

    def finish(self, planned: Planned, sent: Sent) -> str:
        """Move the name; the image that bears it now keeps a name of its own."""
        reference = self.cargo.reference
        old = next((image for image in planned.images if reference in image.tags), None)
        name, _, tag = reference.rpartition(":")
        old_kept = kept_name(name, tag, old.id) if old else "-"
        bare = old is not None and old_kept not in old.tags
        what = Finish(
            sent.folder, self.cargo.facts.id, reference, sent.source, sent.kept,
            body=sent.body, old=old.id if old and bare else "-", old_kept=old_kept,
        )  # fmt: skip
        engine = self.shipping.engine_of(planned.route.host)
        return finish(engine, what, reopens=self.shipping.reopens)

    def folder(self, key: str) -> HostPath:
        return HostPath(f"{self.shipping.stage}/{self.cargo.facts.short}-{key}")

    def progress(self, host: str) -> Callable[[int, int], None]:
        """Tell of every twentieth of the way: a log of a big image stays short."""
        told = -1

        def tell(done: int, total: int) -> None:
            nonlocal told
            twentieth = 20 * done // total if total else 20
            if twentieth > told:
                told = twentieth
                self.say(host, f"{human(done)} of {human(total)}", done / total if total else 1.0)

        return tell

    def say(self, host: str, text: str, share: float | None = None) -> None:
        self.shipping.listen(Event(host, "ship", text, share))


@dataclass(frozen=True, slots=True)
class Sent:
    """What goes out to a host: how many bytes, into which folder, and how to read them."""

    count: int
    folder: HostPath
    source: Source
    kept: str = "-"  # a name still to give
    body: bytes = field(default=b"", repr=False)


def refuse_trouble(cargo: Cargo, planned: Route) -> None:
    """Raise Blocked for a host that cannot take the image."""
    if not planned.trouble:
        return
    host = planned.host
    full = "free" in planned.trouble
    raise Blocked(
        f"cannot ship {cargo.reference} to {host}: {planned.trouble}",
        host=host,
        remedy=f"bringup image.prune --host {host}" if full else f"bringup probe --host {host}",
    )


def other_identity(cargo: Cargo, host: str, found: str) -> VerifyFailed:
    return VerifyFailed(
        f"cannot accept {cargo.reference} on {host}: it is {found[:19]}, not {cargo.facts.id[:19]}",
        host=host,
        remedy=f"bringup image.rollback --host {host} restores the image before",
    )


def own_reference(own: str, cargo: Cargo) -> str:
    return f"{own.rstrip('/')}/{cargo.kept}"


def push_to(shipping: Shipping, cargo: Cargo) -> None:
    """Push to the inventory's registry; layers that it has stay unsent."""
    reference = own_reference(shipping.own_registry, cargo)
    source = shipping.source
    source.tag(cargo.facts.id, reference)
    with logged_in(source, shipping.login, reference) as words:
        source.do(*words, "push", reference, why=f"cannot push {reference}", seconds=7200)


def save_archive(source: Engine, cargo: Cargo, scratch: Path, packer: str) -> Stream:
    """Return a compressed archive of an image that this machine's engine has."""
    path = scratch / "image.packed"
    source.save(cargo.kept, path, packer)
    return file_stream(path, f"archive-{packer}")
