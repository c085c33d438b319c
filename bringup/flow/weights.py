"""Bring a model's weights to the hosts that lack them: look, plan, copy, look again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..core.errors import Blocked, ToolError, UsageError
from ..core.event import Event
from ..core.host import Host
from ..core.reading import Known
from ..edge.actions import ScriptedRemote
from ..edge.pool import each
from ..edge.site import site_of
from ..weights.compare import difference, faults_of, total_fault, wanted
from ..weights.folder import File, Folder, Seat
from ..weights.look import NAME, look_ask, parse_look
from ..weights.plan import BETWEEN, HostPlan, Way, host_plan, on_shares, rate_of, seconds_for, size
from .types import Tools
from .weights_errand import Terms
from .weights_sums import sums_of


@dataclass(frozen=True, slots=True)
class Place:
    """A model folder on a host."""

    host: Host
    path: str
    remote: ScriptedRemote

    @property
    def name(self) -> str:
        return f"{self.host.name}:{self.path}"


@dataclass(frozen=True, slots=True)
class CopyWish:
    """What the operator wants. `source` None: any target or peer that has all is the source."""

    targets: tuple[Place, ...]
    source: Place | None = None
    peers: tuple[Place, ...] = ()
    is_here: bool = False  # the source is a folder of this controller
    mounted: str = ""  # the source is a path that every target sees itself
    every: bool = False
    replace: bool = False
    hashes: bool = False
    sums: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by name, from a list
    terms: Terms = field(default_factory=Terms)
    at_once: int = 16


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What is to be copied from where, in the order of the targets; errors stop single hosts."""

    wish: CopyWish
    source: Place
    folder: Folder
    files: tuple[File, ...]
    left_out: tuple[File, ...]
    plans: Mapping[str, HostPlan]
    errors: Mapping[str, ToolError]
    way: Way
    sums: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Estimated."""
        limit = self.wish.terms.rate / 1e6
        return seconds_for(self.plans, self.way, self.folder, limit_mb_s=limit)

    @property
    def rate_mb_s(self) -> float:
        """What the estimate assumes."""
        return rate_of(self.folder, self.way, limit_mb_s=self.wish.terms.rate / 1e6)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the source and does not stand in the way."""
        return tuple(note for note in (total_fault(self.folder),) if note)


def look(place: Place) -> Folder:
    """Return what lies at a place, in one trip. Raises ToolError where nobody could look."""
    ask = look_ask(place.path)
    seen = parse_look(site_of(place.host, place.remote).ask((ask,))[NAME], place.path)
    if isinstance(seen, Known):
        return seen.value
    raise ToolError(
        f"cannot look at {place.path}: {seen.why if hasattr(seen, 'why') else seen.evidence}",
        host=place.host.name,
        said=seen.evidence,
        remedy=f"try on the host: timeout 20 ls -l {place.path}; a mount that hangs shows there",
    )


def look_at(
    tools: Tools, places: Iterable[Place]
) -> tuple[dict[str, Folder], dict[str, ToolError]]:
    """Look at many places side by side; return folders and errors by the places' names."""
    folders: dict[str, Folder] = {}
    errors: dict[str, ToolError] = {}

    def one(place: Place) -> Folder:
        tools.listen(Event(place.host.name, "look", place.path))
        return look(place)

    for outcome in each({place.name: place for place in places}.values(), one, limit=tools.limit):
        if isinstance(outcome.error, ToolError):
            errors[outcome.item.name] = outcome.error.at(host=outcome.item.host.name)
        elif outcome.error is not None:
            raise outcome.error
        elif outcome.value is not None:
            folders[outcome.item.name] = outcome.value
        text = told(outcome.value) if outcome.value else str(outcome.error)
        tools.listen(Event(outcome.item.host.name, "look", text, is_end=True))
    return folders, errors


def told(folder: Folder) -> str:
    """Return in words what a look found."""
    if folder.seat is not Seat.FOLDER:
        return f"{folder.path} {folder.why}"
    return f"{folder.path}: {len(folder.weights)} weight files, {size(folder.weight_bytes)}"


def plan_sync(tools: Tools, wish: CopyWish) -> SyncPlan:
    """Look at the source and at all targets; return what is to be done. Writes nothing.

    Raises what stood in the way of looking at the source; Blocked where it is not whole itself.
    """
    _refuse_twice(wish.targets)
    source = wish.source or (_mount_of(wish) if wish.mounted else None)
    others = (source,) if source else wish.peers
    folders, errors = look_at(tools, (*wish.targets, *others))
    source = source or _whole_one((*wish.targets, *wish.peers), folders, errors)
    if source.name in errors:
        raise errors[source.name]
    folder = folders[source.name]
    refuse_faults(source, folder)
    files, left_out = wanted(folder, every=wish.every)
    sums, have, unread = _sums(tools, wish, source, files, folders)
    errors |= unread
    targets = [place for place in wish.targets if place.name not in errors]
    way = way_of(wish)
    plans: dict[str, HostPlan] = {}
    for place in targets:
        there = folders[place.name]
        found = difference(
            files, folder, there, replace=wish.replace, sums=have.get(place.name), want=sums
        )
        plan = host_plan(place.host.name, there, found, way)
        lacks = _lacks(source, folder, there) if plan.is_change and way in BETWEEN else ""
        plans[place.host.name] = dataclasses.replace(plan, trouble=plan.trouble or lacks)
    plans = on_shares(plans)
    failed = {p.host.name: errors[p.name] for p in wish.targets if p.name in errors}
    return SyncPlan(wish, source, folder, files, left_out, plans, failed, way, sums)


def way_of(wish: CopyWish) -> Way:
    """Return how bytes are to reach the hosts, by what is known before anything starts."""
    if wish.mounted:
        return Way.MOUNTED
    if wish.is_here:
        return Way.SENT
    return Way.CARRIED if wish.terms.carried else Way.DIRECT


def _lacks(source: Place, folder: Folder, there: Folder) -> str:
    """Say which program is missing for a copy from host to host, "" where none is."""
    if not folder.ground.sshd:
        return f"{source.host.name} has no sshd in its PATH to serve files by"
    if not there.ground.ssh:
        return "it has no ssh client to fetch files by (package openssh-client, openssh-clients)"
    return ""


def _refuse_twice(targets: tuple[Place, ...]) -> None:
    names = [place.host.name for place in targets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"cannot copy to {twice[0]} twice in one run",
            remedy="name each host once; a second folder takes a second run",
        )


def _mount_of(wish: CopyWish) -> Place:
    first = wish.targets[0]
    return Place(first.host, wish.mounted, first.remote)


def _whole_one(
    targets: tuple[Place, ...], folders: Mapping[str, Folder], errors: Mapping[str, ToolError]
) -> Place:
    """Return the first target that has all by its own account; raises what all have instead."""
    for place in targets:
        if place.name in folders and not faults_of(folders[place.name]):
            return place
    for error in errors.values():
        raise error
    said = [f"{name}: {'; '.join(map(str, faults_of(f)[:2]))}" for name, f in folders.items()]
    raise Blocked(
        "cannot find a whole copy of the weights on any of these hosts",
        said="\n".join(said[:8]),
        remedy="name where they are: --from HOST:PATH, --from PATH (here), or --mounted PATH",
    )


def refuse_faults(source: Place, folder: Folder) -> None:
    """Raise for a source that is not whole: copying it would spread its faults."""
    if folder.seat is not Seat.FOLDER:
        raise UsageError(
            f"cannot copy from {source.path}: it {folder.why}", host=source.host.name,
            remedy="see ls -ld of it on that host; a hub's cache has it under snapshots/REVISION",
        )  # fmt: skip
    if faults := faults_of(folder):
        raise Blocked(
            f"cannot copy from {source.path}: it is not whole",
            host=source.host.name,
            said="\n".join(map(str, faults[:8])),
            remedy="name a whole one as --from, or mend this one from another host:"
            f" bringup weights.sync --from OTHER:PATH --to {source.name}",
        )


def _sums(
    tools: Tools,
    wish: CopyWish,
    source: Place,
    files: tuple[File, ...],
    folders: Mapping[str, Folder],
) -> tuple[Mapping[str, str], Mapping[str, Mapping[str, str]], Mapping[str, ToolError]]:
    """Return the SHA-256 that files are to have, those that targets' files have, by place, and
    what kept targets from being read. Raises CommandFailed where the source cannot be.
    """
    if not wish.hashes:
        return {}, {}, {}
    known = {f.name: wish.sums.get(f.name) or f.sum or f.told for f in files}
    lacking = [f for f in files if not known[f.name]]
    known |= sums_of(source.remote, source.path, lacking, tools.listen)
    have: dict[str, Mapping[str, str]] = {}
    unread: dict[str, ToolError] = {}

    def one(place: Place) -> Mapping[str, str]:
        same = [f for f in files if _same_size(f, folders[place.name])]
        return sums_of(place.remote, place.path, same, tools.listen)

    places = {place.name: place for place in wish.targets if place.name in folders}
    for outcome in each(places.values(), one, limit=tools.limit):
        if isinstance(outcome.error, ToolError):
            unread[outcome.item.name] = outcome.error.at(host=outcome.item.host.name)
        elif outcome.error is not None:
            raise outcome.error
        else:
            have[outcome.item.name] = outcome.value or {}
    return {name: sum_ for name, sum_ in known.items() if sum_}, have, unread


def _same_size(file: File, folder: Folder) -> bool:
    there = folder.files.get(file.name)
    return there is not None and there.size == file.size and file.is_weight
