"""Carry out a planned copy of weights: stations, hosts side by side, breaks, a second look."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..core.errors import Blocked, LockHeld, ToolError, Unreachable, VerifyFailed
from ..core.event import Event
from ..edge.pool import each
from ..weights.compare import difference
from ..weights.folder import Folder
from ..weights.plan import BETWEEN, HostPlan, host_plan, order_for
from .types import Tools
from .weights import Place, SyncPlan, look
from .weights_copy import Copier
from .weights_errand import Errand
from .weights_market import Market
from .weights_station import Keys, Station, beating, open_station

HELPERS = 4
"""Hosts besides the source that have all and hand it on as well."""

ROUNDS = 2
"""Times that files are fetched which the second look finds wrong."""


@dataclass(frozen=True, slots=True)
class Copied:
    """How one host came out. `sent` are the bytes that came in this run, `by` who sent them."""

    host: str
    path: str
    files: int = 0
    sent: int = 0
    seconds: float = 0.0
    by: dict[str, int] = field(default_factory=dict)
    error: ToolError | None = None


def copy(tools: Tools, plan: SyncPlan) -> dict[str, Copied]:
    """Copy to every host that lacks something; one that fails stops that one alone."""
    places = {p.host.name: p for p in plan.wish.targets if p.host.name in plan.plans}
    able = [n for n, one in plan.plans.items() if one.is_change and not one.trouble]
    if not able:
        return {}
    done: dict[str, Copied] = {}
    with _copier(tools, plan, places) as copier:

        def one(name: str) -> Copied:
            place = places[name]
            return _Host(tools, plan, copier, place, able.index(name), len(able)).copied()

        for outcome in each(able, one, limit=plan.wish.at_once):
            if isinstance(outcome.error, ToolError):
                error = outcome.error.at(host=outcome.item)
                done[outcome.item] = Copied(outcome.item, places[outcome.item].path, error=error)
            elif outcome.error is not None:
                raise outcome.error
            elif outcome.value is not None:
                done[outcome.item] = outcome.value
            text = "done" if outcome.error is None else str(outcome.error)
            tools.listen(Event(outcome.item, "copy", text, is_end=True))
    return done


@contextlib.contextmanager
def _copier(tools: Tools, plan: SyncPlan, places: dict[str, Place]) -> Iterator[Copier]:
    """Open the stations that serve from the start; end them all at the end."""
    keys, terms = Keys(), plan.wish.terms
    stations: list[Station] = []

    def reopen(station: Station) -> Station:
        fresh = open_station(
            station.host, station.remote, keys, station.path, plan.files, serves=True,
            port=terms.port,
        )  # fmt: skip
        stations.append(fresh)
        return fresh

    market = Market(reopen)
    names = tuple(file.name for file in plan.files)
    with beating(stations):
        if plan.way in BETWEEN:
            whole = [p for n, p in places.items() if not plan.plans[n].is_change]
            every = {p.host.name: p for p in (plan.source, *whole[:HELPERS])}
            for place in every.values():
                tools.listen(Event(place.host.name, "serve", place.path, is_end=True))
                station = open_station(
                    place.host, place.remote, keys, place.path, plan.files, serves=True,
                    port=terms.port,
                )  # fmt: skip
                stations.append(station)
                market.join(station, names)
            _refuse_deaf(plan, market, stations[0])
        copier = Copier(plan.way, terms, plan.sums, plan.files, keys, market, stations)
        try:
            yield copier
        finally:
            copier.over.set()


def _refuse_deaf(plan: SyncPlan, market: Market, source: Station) -> None:
    if market.stations:
        return
    raise ToolError(
        f"cannot serve files on {plan.source.host.name}: {source.why or 'no server started'}",
        host=plan.source.host.name,
        remedy="see that sshd is there (command -v sshd); with --port choose a free one",
    )


@dataclass(slots=True)
class _Host:
    """One host on its way to being whole."""

    tools: Tools
    plan: SyncPlan
    copier: Copier
    place: Place
    number: int
    count: int
    broken: int = 0  # times in a row that the line dropped without a byte in between
    noted: int = 0
    errands: list[Errand] = field(default_factory=list)

    @property
    def sent(self) -> int:
        return sum(errand.sent for errand in self.errands)

    def copied(self) -> Copied:
        """Fetch what is missing until a look finds nothing more. Raises ToolError."""
        began, rounds = time.monotonic(), 0
        step: HostPlan | None = self.plan.plans[self.place.host.name]
        first = len(step.difference.files) if step else 0
        while step is None or step.is_change:
            try:
                if step is None:
                    step = self._looked()
                    continue
                if rounds > ROUNDS:
                    raise self._still(step)
                self._attempt(step)
                rounds, step = rounds + 1, None
            except (Unreachable, LockHeld) as error:
                self._pause(error)
                step = None
        by: dict[str, int] = {}
        for errand in self.errands:
            for name, count in errand.by.items():
                by[name] = by.get(name, 0) + count
        return Copied(
            self.place.host.name, self.place.path, first, self.sent, time.monotonic() - began, by
        )

    def _looked(self) -> HostPlan:
        self.tools.listen(Event(self.place.host.name, "verify", self.place.path))
        folder = look(self.place)
        found = difference(
            self.plan.files, self.plan.folder, folder, replace=True
        )  # mixing was refused before; what differs now came broken
        step = host_plan(self.place.host.name, folder, found, self.plan.way)
        if step.trouble:
            raise Blocked(
                f"cannot go on with {self.place.path}: {step.trouble}", host=self.place.host.name,
                remedy="free space there, then run the same command again: what arrived is kept",
            )  # fmt: skip
        return step

    def _attempt(self, step: HostPlan) -> None:
        errand = Errand(
            step, self.place.host, self.place.remote, self.tools.listen,
            pending=list(order_for(step.difference.files, self.number, self.count)),
            numbers={file.name: n for n, file in enumerate(self.plan.files, 1)},
            place=self.plan.wish.mounted or self.plan.source.path,
            sees_it=bool(self.plan.wish.mounted)
            or self.place.host.name == self.plan.source.host.name,
            parts=dict(step.folder.parts),
        )  # fmt: skip
        self.errands.append(errand)
        self.copier.attempt(errand)

    def _pause(self, error: ToolError) -> None:
        """Wait before a broken line is opened again; raise the error once it broke too often."""
        if isinstance(error, LockHeld) and not self.broken:
            raise error
        self.broken = 1 if self.sent > self.noted else self.broken + 1
        self.noted = self.sent
        if self.broken > self.plan.wish.terms.reopens:
            raise error
        pause = min(30.0, 2.0**self.broken)
        text = f"{error.message}; again in {pause:.0f} s"
        self.tools.listen(Event(self.place.host.name, "copy", text))
        time.sleep(pause)

    def _still(self, step: HostPlan) -> VerifyFailed:
        names = [file.name for file in step.difference.files]
        told: Folder = step.folder
        return VerifyFailed(
            f"cannot find {names[0]} as the source has it after copying"
            + (f", nor {len(names) - 1} others" if len(names) > 1 else ""),
            host=self.place.host.name,
            said="\n".join(f"{f.name}: {why}" for f, why in step.difference.wrong[:5]),
            remedy=f"see whether something else writes to {told.path}, and dmesg for disk errors",
        )
