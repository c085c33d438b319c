"""What hosts of one deployment must have in common: versions, model, image, ports, clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

from ..core.reading import Known
from ..core.rules import Joint, Level, Row, Seen, Status, World, failed, passed, skipped, warned
from ..core.sameness import same_image
from ..probes.clock import Clock
from ..probes.gpu import Gpus
from ..probes.hca import InfiniBand
from ..probes.model import ModelFolder
from ..probes.network import Reach
from ..probes.stored_image import StoredImage
from .judging import QUIET, SOFT

OFFSET_S, FAR_S = 0.05, 5.0  # node-exporter's rule; the second is our own

Told = Mapping[str, str]
"""What each host says, by name of the host; a host that was not read is left out."""


def told_by(joint: Joint, say: Callable[[World], str]) -> Told:
    """Return what every host of a deployment says, without those that say nothing."""
    said = {name: say(world) for name, world in sorted(joint.worlds.items())}
    return {name: word for name, word in said.items() if word}


def compared(joint: Joint, said: Told, what: str, *, differ: Callable[..., Seen] = failed) -> Seen:
    """Judge whether all hosts say the same; agreement of some, others unread, proves nothing."""
    if len(joint.worlds) < 2:
        return skipped("one host: nothing to compare")
    lines = [f"{name}: {word}" for name, word in said.items()]
    if len(set(said.values())) > 1:
        return differ(*lines)
    unread = [name for name in joint.worlds if name not in said]
    if unread:
        why = f"unknown: {what} of {' '.join(sorted(unread))}"
        return Seen(Status.UNKNOWN, (why, *lines), level=Level.NOTE)
    return passed(f"{next(iter(said.values()))} on {' '.join(said)}")


def _branch(world: World) -> str:
    seen = world.facts[Gpus]
    return seen.value.driver.partition(".")[0] if isinstance(seen, Known) else ""


def _boards(world: World) -> str:
    seen = world.facts[Gpus]
    gpus = seen.value.gpus if isinstance(seen, Known) else ()
    return ", ".join(sorted({gpu.name for gpu in gpus if gpu.name}))


def _firmware(world: World) -> str:
    seen = world.facts[InfiniBand]
    devices = seen.value.compute if isinstance(seen, Known) else ()
    return ", ".join(sorted({device.firmware for device in devices if device.firmware}))


def _model(world: World) -> str:
    seen = world.facts[ModelFolder]
    return seen.value.identity[:19] if isinstance(seen, Known) else ""


def _image(world: World) -> str:
    seen = world.facts[StoredImage]
    return seen.value.id[:19] if isinstance(seen, Known) else ""


def _images(joint: Joint) -> Seen:
    """Compare images, not IDs: engines with another store give another ID to the same image."""
    readings = {name: world.facts[StoredImage] for name, world in sorted(joint.worlds.items())}
    stored = {name: r.value for name, r in readings.items() if isinstance(r, Known)}
    said = told_by(joint, _image)
    if len(joint.worlds) < 2 or len(stored) < 2 or len(set(said.values())) < 2:
        return compared(joint, said, "the image")
    answers = [same_image(a.identity, b.identity) for a, b in combinations(stored.values(), 2)]
    lines = [f"{name}: {word}" for name, word in said.items()]
    if False in answers:
        return failed(*lines, remedy=_ship(joint))
    unread = [name for name in readings if name not in stored]
    if None in answers or unread:
        why = f"unknown: the image of {' '.join(unread)}" if unread else (
            "unknown: these engines count IDs in two ways; ask anew to compare layers"
        )  # fmt: skip
        return Seen(Status.UNKNOWN, (why, *lines), level=Level.NOTE)
    return passed(f"{min(said.values())} on {' '.join(said)}, each by its engine's own ID")


def _ship(joint: Joint) -> str:
    hosts = " ".join(f"--host {name}" for name in sorted(joint.worlds))
    return f"bringup image.ship {joint.deployment.image.name} {hosts}"


def _ports(joint: Joint) -> Seen:
    """Join what the hosts met on each other's ports; the test is opt-in."""
    readings = {name: world.facts[Reach] for name, world in sorted(joint.worlds.items())}
    tried = {name: r.value.met for name, r in readings.items() if isinstance(r, Known)}
    if len(joint.worlds) < 2:
        return skipped("one host: no peers")
    if not tried:
        return Seen(Status.UNKNOWN, ("unknown: not asked",), level=Level.NOTE)
    blocked = [
        f"{name} → {target}: {how}"
        for name, met in tried.items()
        for target, how in met.items()
        if how not in ("open", "refused")
    ]
    if blocked:
        return failed(*blocked)
    missing = [name for name in readings if name not in tried]
    if missing:
        why = f"unknown: nothing was tried from {' '.join(missing)}"
        return Seen(Status.UNKNOWN, (why,), level=Level.NOTE)
    return passed(*(f"{name} → {' '.join(met)}" for name, met in tried.items()))


def _clocks(joint: Joint) -> Seen:
    """Compare leads over the controller; what the trips leave uncertain counts for nobody."""
    clocks = {name: world.facts[Clock] for name, world in sorted(joint.worlds.items())}
    leads = {
        name: (r.value.offset_s, r.value.uncertain_s or 0.0)
        for name, r in clocks.items()
        if isinstance(r, Known) and r.value.offset_s is not None
    }
    if len(joint.worlds) < 2:
        return skipped("one host: nothing to compare")
    if len(leads) < len(clocks):
        unread = " ".join(name for name in clocks if name not in leads)
        return Seen(Status.UNKNOWN, (f"unknown: the clock of {unread}",), level=Level.NOTE)
    early, late = min(leads, key=lambda n: leads[n][0]), max(leads, key=lambda n: leads[n][0])
    apart = leads[late][0] - leads[early][0]
    sure = apart - leads[late][1] - leads[early][1]
    line = f"{late} is {apart:.3f} s ahead of {early}"
    if sure > FAR_S:
        return failed(line)
    return warned(line) if sure > OFFSET_S else passed(line)


def same(
    what: str, say: Callable[[World], str], **more: Callable[..., Seen]
) -> Callable[[Joint], Seen]:
    """Make a row's look that compares one word of every host."""

    def look(joint: Joint) -> Seen:
        return compared(joint, told_by(joint, say), what, **more)

    return look


ROWS: tuple[Row[Joint], ...] = (
    Row(
        "pair-gpus", "All hosts have the same GPUs", same("GPUs", _boards),
        "prefill and decode exchange caches whose layout depends on the GPU",
        "https://github.com/imbue-ai/cluster-health",
        "split the deployment by kind of host", SOFT,
    ),
    Row(
        "pair-driver", "All hosts run one driver branch",
        same("the driver", _branch, differ=warned),
        "one image cannot suit two branches for long, and faults then differ by host",
        "https://docs.nvidia.com/deploy/cuda-compatibility/", "upgrade the older host when drained",
    ),
    Row(
        "pair-nic-firmware", "Compute devices of all hosts run one firmware",
        same("NIC firmware", _firmware, differ=warned),
        "mixed firmware behaves differently under load and hides faults",
        "https://github.com/imbue-ai/cluster-health",
        "flash all to one version: mlxfwmanager --online -u", QUIET,
    ),
    Row(
        "pair-model", "All hosts hold the same model files", same("the model folder", _model),
        "a cache computed from other weights is garbage that looks like an answer",
        "docs/checks.md#storage",
        "bringup weights.sync --deployment DEPLOYMENT --check tells what differs; then without it",
    ),
    Row(
        "pair-image", "All hosts hold the same image", _images,
        "two images under one tag fail in ways that look like network faults",
        "https://github.com/sparkrun/sparkrun/issues/67",
        "carry one image to all of them by digest: bringup image.ship NAME --host HOSTS",
    ),
    Row(
        "pair-ports", "Hosts reach each other's ports", _ports,
        "decode finds prefill through its bootstrap port; a dropped packet shows as a hang",
        "docs/checks.md#network", "open these ports between the hosts in the firewall",
    ),
    Row(
        "pair-clocks", "Clocks of all hosts agree", _clocks,
        "logs of two workers cannot be matched when their clocks differ",
        "https://github.com/prometheus/node_exporter", "systemctl enable --now chrony", SOFT,
    ),
)  # fmt: skip
