"""Measure topologies against each other on one host: start, wait, measure, stop, one by one.

What was written stays written, receipts say it; what was started is stopped, whatever happens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..bench import clock
from ..bench.derive import SHORT, impossible
from ..bench.table import LEFT_OUT, REFUSED, Bench, Row, with_row
from ..core.event import Event
from ..core.outcome import Ended
from ..engines.topology_load import Topology
from .apply import apply
from .bench_attempt import Attempt
from .bench_host import FREE_S, in_use, ours_on
from .bench_keep import keep
from .bench_task import Task, accepted, refused
from .provision import make_plan
from .serve import KnownDeployment, Wish, know, stop
from .targets import target_of
from .types import Order, Tools

BUSY = "end what runs there, or wait for it: what bringup did not start is not stopped"


@dataclass(slots=True)
class BenchRun:
    """One run: goes through what is to do, and keeps each row as soon as there is one."""

    tools: Tools
    task: Task
    bench: Bench
    past: dict[clock.Step, float] = field(default_factory=dict)
    has_stopped: bool = False
    """Whether it stopped something: its memory may take a while to be free again."""

    def go(self) -> Bench:
        """Measure all that has no final row yet; return the run with all rows."""
        todo = self.bench.todo
        self._clear()
        for place, topology in enumerate(todo):
            row = self._one(topology, todo[place:])
            self.past |= clock.of_row(row)
            self.bench = replace(self.bench, rows=with_row(self.bench.rows, row))
            keep(self.tools, self.bench)
            self._tell(topology, f"{row.state} {row.why}".strip(), is_end=True)
        self.bench = replace(self.bench, ended=self.tools.moment())
        keep(self.tools, self.bench)
        return self.bench

    def _clear(self) -> None:
        """Stop what an earlier run that was cut off left running, in whatever topology."""
        for topology in SHORT:
            if not impossible(topology, self.task.ground):
                wish = self.task.wish(topology)
                ended = stop(self.tools, wish, target_of(wish.inventory, wish.deployment))
                self.has_stopped |= any(one.receipt for one in ended)

    def _one(self, topology: Topology, todo: tuple[Topology, ...]) -> Row:
        began = time.monotonic()
        row = self._attempt(topology, todo)
        return replace(row, seconds=round(time.monotonic() - began, 1))

    def _attempt(self, topology: Topology, todo: tuple[Topology, ...]) -> Row:
        if why := impossible(topology, self.task.ground):
            return Row(topology, LEFT_OUT, why=why)
        if not self.task.accepts_use and (used := self._in_use()):
            fix = ours_on(self.tools, self.task) or BUSY
            return Row(topology, REFUSED, why=used, cause="GPU-20", fix=fix)
        wish = self.task.wish(topology)
        known = know(self.tools, wish)
        if error := known.errors.get(self.task.host.name):
            raise error
        if refusal := self._write(wish, known):
            return refused(topology, refusal)
        with self._stopped(wish):
            return Attempt(
                self.tools, self.task, self.bench, self.past, topology, wish, known, todo
            ).row()

    def _in_use(self) -> str:
        patience = FREE_S if self.has_stopped else 0.0
        return in_use(self.tools, self.task.host, self.task.ground.gpus, wait_s=patience)

    def _write(self, wish: Wish, known: KnownDeployment) -> Ended | None:
        """Write the scripts of a topology; return how the host came out where that is refused."""
        host, name = self.task.host, wish.deployment.name
        order = Order(wish.inventory, (host,), {host.name: wish.deployment})
        plan = make_plan(self.tools, order, host, known.facts)
        plan = replace(plan, findings=tuple(accepted(plan.findings, self.task.accept)))
        if plan.blocks:
            return Ended(host.name, plan)
        if plan.changes:
            self.tools.listen(Event(host.name, "write", f"the scripts of {name}"))
            _receipt, _record, failed = apply(self.tools, host, plan)
            if failed:
                raise failed
        return None

    @contextmanager
    def _stopped(self, wish: Wish) -> Iterator[None]:
        """Stop what was started, also when the operator breaks off."""
        try:
            yield
        finally:
            self.tools.listen(Event(self.task.host.name, "stop", wish.deployment.name))
            ended = stop(self.tools, wish, target_of(wish.inventory, wish.deployment))
            self.has_stopped |= any(one.receipt for one in ended)
            for one in ended:
                if one.error:
                    raise one.error

    def _tell(self, topology: Topology, text: str, *, is_end: bool = False) -> None:
        self.tools.listen(Event(self.task.host.name, SHORT[topology], text, is_end=is_end))
