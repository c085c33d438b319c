"""The image as part of a plan: carried to a host that lacks what the image's folder says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..core.facts import Facts
from ..core.host import Deployment, Host
from ..core.reading import Known, Reading
from ..core.rules import Finding, Level, Status
from ..core.sameness import Identity
from ..core.steps import Carry, Observation, State, Step
from ..image.route import Route, cure, human
from ..image.step import image_step
from ..image.wanted import REASON, SOURCE, Offer, Wanted, settled, wanted
from ..probes.container import ContainerEngine
from ..probes.stored_image import StoredImage
from .types import Order, Tools


@dataclass(frozen=True, slots=True)
class Placement:
    """What the image of a deployment comes to on one host."""

    offer: Offer | None = None
    want: Wanted = field(default_factory=Wanted)
    held: Mapping[str, Reading[Identity]] | None = None
    engine: str = "docker"

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step that wants the image there; none where there is nothing to carry."""
        if self.offer is None or not self.want.identity:
            return ()
        offer, identity = self.offer, self.want.identity
        step = image_step(
            offer.reference, identity=identity, context=offer.context, engine=(self.engine,)
        )
        action = Carry(offer.name, offer.reference, identity)
        return (replace(step, actions=(action,)),)

    def judged(self, findings: tuple[Finding, ...], order: Order) -> tuple[Finding, ...]:
        """Return a host's findings with what the image adds to them and takes from them."""
        own = (self.want.finding,) if self.want.finding else ()
        if not self.want.identity or self.held is None:
            return (*findings, *own)
        ordered = frozenset(host.name for host in order.hosts)
        return settled(findings, self.want.identity, self.held, ordered)


def placement(
    tools: Tools, host: Host, deployment: Deployment | None, facts: Mapping[str, Facts]
) -> Placement:
    """Return which image a host is to hold, by the facts of all hosts of its deployment."""
    if tools.freight is None or deployment is None or deployment.role_of(host.name) is None:
        return Placement()
    offer = tools.freight.offer(deployment)
    if offer is None:
        return Placement()
    held = {name: _identity(one[StoredImage]) for name, one in facts.items()}
    engine = facts[host.name][ContainerEngine]
    words = engine.value.name if isinstance(engine, Known) else "docker"
    return Placement(offer, wanted(offer, held, host.name), held, words)


def _identity(reading: Reading[StoredImage]) -> Reading[Identity]:
    return Known(reading.value.identity) if isinstance(reading, Known) else reading


def routed(
    tools: Tools,
    host: Host,
    place: Placement,
    steps: tuple[Step, ...],
    seen: Mapping[str, Observation],
    *,
    engine_comes: bool,
) -> tuple[tuple[Step, ...], tuple[Finding, ...]]:
    """Return steps whose image says its way and bytes, and what forbids to carry it.

    One more trip, and only where the host lacks the image. With `engine_comes`, a fix brings the
    engine first, so that a host without one is no obstacle.
    """
    want = place.steps[0].id if place.steps else ""
    if not want or seen[want].state is State.SAME or tools.freight is None or place.offer is None:
        return steps, ()
    way = tools.freight.foresee(host, place.offer, place.engine)
    if way.trouble and not engine_comes:
        return steps, (_refused(host, place.offer, way),)
    return tuple(_told(step, way) if step.id == want else step for step in steps), ()


def _told(step: Step, way: Route) -> Step:
    (action,) = step.actions
    assert isinstance(action, Carry)
    cost = f"about {human(way.sends)}" if way.sends else "nothing to send"
    short = action.identity.removeprefix("sha256:")[:12]
    carry = replace(action, way=way.way.value, sends=way.sends)
    title = f"ship image {action.reference} {short}: {way.way.value}, {cost}"
    if way.trouble:  # an engine comes first
        title, carry = f"ship image {action.reference} {short}", action
    return replace(step, title=title, actions=(carry,), why=f"{step.why}; {way.why}".rstrip("; "))


def _refused(host: Host, offer: Offer, way: Route) -> Finding:
    remedy = cure(way.trouble, host=host.name, name=offer.name)
    return Finding(
        "image-ship", "The host can take the image", Status.FAIL, Level.BLOCK, host.name,
        (f"{offer.reference}: {way.trouble}",), REASON, remedy, SOURCE,
    )  # fmt: skip
