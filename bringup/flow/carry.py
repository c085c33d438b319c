"""Carry one image to one host: send what is missing, load it, compare it, move the name."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import Blocked, ToolError, VerifyFailed
from ..core.event import Event
from ..core.reading import Known
from ..core.steps import Run
from ..core.words import HostPath
from ..edge import cargo_stream, registry
from ..edge.cargo_stream import Stream, file_stream, layers_stream
from ..edge.engine import Engine
from ..edge.registry import Registry, Stored
from ..image.record import kept_name
from ..image.route import Cargo, HostImages, Route, Way, cure, human
from .claim import Claim
from .own_registry import own_reference, push_to
from .pull import adopt, pull
from .relay import fetch_parts, serving
from .ship_types import Arrived, PlannedHost, Shipping
from .upload import Finish, Source, finish, staged, upload


@dataclass(slots=True)
class Carrier:
    """Carries one cargo, host by host."""

    shipping: Shipping
    cargo: Cargo
    local: Registry | None
    stored: Stored | None
    scratch: Path
    archives: dict[Source, Stream] = field(default_factory=dict)
    is_pushed: bool = False  # to the inventory's registry
    seed: str = ""  # host that hands parts on; its own stay until all is done
    relay_url: str = ""
    has_locks: bool = False  # whether who gave the order holds the hosts' locks
    claims: dict[str, Claim] = field(default_factory=dict)

    def prepare(self, plans: Collection[PlannedHost]) -> None:
        """Make once what several hosts will need: an archive, or the push to an own registry."""
        able = [planned for planned in plans if not planned.route.trouble]
        for planned in able:
            if planned.route.way is Way.ARCHIVE:
                self.archive_for(planned.there)
        if any(planned.route.way is Way.REGISTRY for planned in able) and not self.is_pushed:
            push_to(self.shipping, self.cargo)
            self.is_pushed = True

    def archive_for(self, there: HostImages) -> tuple[Stream, Source]:
        """Return the archive that a host can unpack; each kind is made once."""
        modern = there.zstd and shutil.which("zstd") is not None
        packing = Source.ZSTD if modern else Source.GZIP
        if packing not in self.archives:
            self.archives[packing] = save_archive(
                self.shipping.source, self.cargo, self.scratch, packing.value
            )
        return self.archives[packing], packing

    def carry(self, planned: PlannedHost) -> Arrived:
        """Carry to one host; whatever goes wrong is in the result."""
        began, host = time.monotonic(), planned.route.host
        sent, identity = Sent(0, HostPath("/nowhere"), Source.NOTHING), ""
        try:
            refuse_trouble(self.cargo, planned.route)
            if planned.route.way is not Way.SAME:
                sent = self.send(planned)
                identity = self.finish(planned, sent)
            else:
                identity = planned.route.holder
            if identity not in (self.cargo.facts.id, self.cargo.classic_id):
                self.compare(host, identity)
        except ToolError as error:
            return Arrived(
                planned.route, identity, sent.count, time.monotonic() - began, error.at(host=host)
            )
        finally:
            self.let_go(host, but=self.seed)
        self.say(host, f"{self.cargo.facts.short} is there as {self.cargo.reference}", 1.0)
        return Arrived(planned.route, identity, sent.count, time.monotonic() - began)

    def claim(self, host: str) -> Claim:
        """Return the hold of a host: taken once parts lie there, until its shipment is over."""
        doing = f"{self.shipping.operator} ships {self.cargo.reference}"
        return self.claims.setdefault(host, Claim(self.shipping.hosts[host], doing))

    def hold(self, host: str) -> Claim:
        """Keep others off a host's parts; raises LockHeld where somebody is at work there."""
        claim = self.claim(host)
        if not self.has_locks:
            claim.take()
        return claim

    def let_go(self, host: str, *, but: str = "") -> None:
        """Give a host's lock back; the one that hands parts on keeps it while it does."""
        if host != but and host in self.claims:
            self.claims[host].release()

    def compare(self, host: str, identity: str) -> None:
        """Raise VerifyFailed for another image; engines with another store say another ID."""
        found = self.shipping.engine_of(host).image(self.cargo.reference)
        if not isinstance(found, Known) or not self.cargo.is_image(found.value):
            raise other_identity(self.cargo, host, identity)

    def send(self, planned: PlannedHost) -> Sent:
        """Send what is missing."""
        way, host = planned.route.way, planned.route.host
        match way:
            case Way.NAMED:
                kept = self.cargo.kept
                return Sent(0, self.folder("none"), Source.NOTHING, kept, planned.route.holder)
            case Way.LAYERS if self.stored is not None:
                stream = layers_stream(self.stored, planned.route.present, self.cargo.kept)
                return self.parts(planned, stream, Source.PARTS)
            case Way.ARCHIVE:
                return self.parts(planned, *self.archive_for(planned.there))
            case Way.PULL if self.local is not None:
                name, _, tag = self.cargo.kept.rpartition(":")
                return self.pull(planned, f"localhost:PORT/{name}:{tag}", self.local.port)
            case Way.REGISTRY:
                return self.pull(planned, own_reference(self.shipping.own_registry, self.cargo), 0)
        raise ToolError(
            f"cannot ship to {host} by {way.value}: the controller has no registry",
            remedy=f"apt-get install {registry.PROGRAM}, or ship by --way archive",
        )

    def parts(self, planned: PlannedHost, stream: Stream, source: Source) -> Sent:
        """Send what needs to resume as parts, and a little along with the last command."""
        if stream.size <= cargo_stream.PART and source is Source.PARTS:
            body = b"".join(part.body for part in stream.parts())
            return Sent(len(body), self.folder("none"), Source.HERE, body=body)
        folder, host = self.folder(stream.key), planned.route.host
        claim = self.hold(host)
        there = planned.there.staged.get(folder.path.rpartition("/")[2], frozenset())
        if there:  # seen before the host was ours
            there &= staged(self.shipping.hosts[host], folder)
        if self.relay_url and host != self.seed:
            there |= self.from_relay(host, folder, stream, there)
        count = upload(
            self.shipping.hosts[host], stream, folder, there, self.progress(host),
            reopens=self.shipping.reopens, claim=claim,
        )  # fmt: skip
        return Sent(count, folder, source)

    def from_relay(
        self, host: str, folder: HostPath, stream: Stream, there: frozenset[str]
    ) -> frozenset[str]:
        """Have a host fetch parts from the one that has them; what is missing is sent from here."""
        names = frozenset(part.name for part in stream.parts()) - there
        self.say(host, f"fetching {len(names)} parts from {self.seed}")
        trouble = fetch_parts(self.shipping.engine_of(host), folder, self.relay_url, sorted(names))
        if not trouble:
            return names
        self.say(host, f"cannot fetch from {self.seed}: {trouble}; sending from here")
        return frozenset()

    @contextlib.contextmanager
    def relaying(self, seed: str, present: int) -> Iterator[None]:
        """Serve the parts that one host was sent, for as long as the others fetch them.

        Where that cannot be, it is said, and each host is sent its own from here.
        """
        assert self.stored is not None
        engine = self.shipping.engine_of(seed)
        folder = self.folder(layers_stream(self.stored, present, self.cargo.kept).key)
        root = self.shipping.roots.get(seed, "/").rstrip("/")
        address = self.shipping.addresses[seed]
        with contextlib.ExitStack() as stack:
            stack.callback(self.let_go, seed)
            stack.callback(self.clear, seed, folder)
            relay = serving(engine, self.cargo.facts.id, f"{root}{folder}", address)
            try:
                self.relay_url = stack.enter_context(relay)
            except ToolError as error:
                last = (error.said.strip().splitlines() or [""])[-1]
                self.say(seed, f"{error.message} ({last}); each host is sent its own from here")
            yield

    def clear(self, seed: str, folder: HostPath) -> None:
        """Hand on no more, and remove the parts that were kept; an error there is only told."""
        self.relay_url = ""
        try:
            self.shipping.hosts[seed].run(Run(("rm", "-rf", folder), 600))
        except ToolError as error:
            self.say(seed, f"cannot remove {folder}: {error.message}")

    def pull(self, planned: PlannedHost, reference: str, tunnel_to: int) -> Sent:
        host, folder = planned.route.host, self.folder("pull")
        engine, claim = self.shipping.engine_of(host), self.hold(host)
        named = pull(
            engine, reference, folder, renew=claim.renew,
            tunnel_to=tunnel_to, login=self.shipping.login, reopens=self.shipping.reopens,
            on_state=lambda text: self.say(host, text),
        )  # fmt: skip
        adopt(engine, named, self.cargo.kept)
        return Sent(planned.route.sends, folder, Source.NOTHING)

    def finish(self, planned: PlannedHost, sent: Sent) -> str:
        """Move the name; the image that bears it now keeps a name of its own."""
        reference = self.cargo.reference
        old = next((image for image in planned.images if reference in image.tags), None)
        name, _, tag = reference.rpartition(":")
        old_kept = kept_name(name, tag, old.id) if old else "-"
        bare = old is not None and old_kept not in old.tags
        what = Finish(
            sent.folder, self.named(planned, sent), reference, sent.source, sent.kept,
            old=old.id if old and bare else "-", old_kept=old_kept,
            keep_parts=planned.route.host == self.seed, body=sent.body,
        )  # fmt: skip
        host = planned.route.host
        engine, renew = self.shipping.engine_of(host), self.claim(host).renew
        return finish(engine, what, reopens=self.shipping.reopens, renew=renew)

    def named(self, planned: PlannedHost, sent: Sent) -> str:
        """Return by what the image is called on a host once it is there: an ID, or its name."""
        if sent.holder:
            return sent.holder
        return self.cargo.kept if planned.there.is_containerd else self.cargo.classic_id

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
    holder: str = ""  # ID under which the image was there already
    body: bytes = field(default=b"", repr=False)


def refuse_trouble(cargo: Cargo, planned: Route) -> None:
    """Raise Blocked for a host that cannot take the image."""
    if not planned.trouble:
        return
    host = planned.host
    raise Blocked(
        f"cannot ship {cargo.reference} to {host}: {planned.trouble}",
        host=host,
        remedy=cure(planned.trouble, host=host, name=cargo.reference.partition(":")[0]),
    )


def other_identity(cargo: Cargo, host: str, found: str) -> VerifyFailed:
    return VerifyFailed(
        f"cannot accept {cargo.reference} on {host}: it is {found[:19]}, not {cargo.facts.id[:19]}",
        host=host,
        remedy=f"bringup image.rollback {cargo.reference.partition(':')[0]} --host {host}",
    )


def save_archive(source: Engine, cargo: Cargo, scratch: Path, packer: str) -> Stream:
    """Return a compressed archive of an image that this machine's engine has."""
    path = scratch / f"image.{packer}"
    source.save(cargo.kept, path, packer)
    return file_stream(path, f"archive-{packer}")
