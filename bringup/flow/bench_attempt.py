"""One topology whose scripts are written: start it, wait for it, measure it, or say why not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from ..bench import clock
from ..bench.derive import SHORT, impossible
from ..bench.table import FAILED, MEASURED, REFUSED, Bench, Row
from ..bench.traffic import Traffic
from ..core.errors import Blocked, ToolError, Unreachable
from ..core.event import Event
from ..core.reading import value_of
from ..edge.ticker import ticking
from ..engines.spec import Spec
from ..engines.topology_load import Topology
from ..readiness.failures import Match, addressed, last_words
from ..readiness.verdict import Over
from .bench_host import Seat, measure, printed, seat_of
from .bench_keep import keep_log
from .bench_task import Task, refused
from .diagnose_hosts import diagnose_hosts
from .ready import Wait, told
from .serve import KnownDeployment, Wish, start
from .status import logs
from .targets import Target, words_of
from .types import Tools

LINES = 4000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One topology whose scripts are written: start it, wait for it, measure it."""

    tools: Tools
    task: Task
    bench: Bench
    past: Mapping[clock.Step, float]
    topology: Topology
    wish: Wish
    known: KnownDeployment
    todo: tuple[Topology, ...]

    def row(self) -> Row:
        """Return how far it came."""
        began = time.monotonic()
        target = self.known.target
        ended = start(self.tools, self.wish)
        if blocked := next((one for one in ended if one.plan and one.plan.blocks), None):
            return refused(self.topology, blocked)
        error = next((one.error for one in ended if one.error), None)
        if isinstance(error, Blocked):
            why = error.message.partition(": ")[2] or error.message  # the name is the row's
            return Row(self.topology, REFUSED, why=why, fix=error.remedy)
        if isinstance(error, Unreachable):
            raise error
        if error is not None:
            return self._dead(target, error.message, error.said)
        commands = self._commands(target)
        wait = Wait(self.tools, target, told(self.tools.listen), self.task.every_s)
        waited = self._ticking(clock.START, wait.run)
        if isinstance(waited.verdict, Over):
            row = self._dead(target, waited.verdict.why, "", waited.verdict.matches)
            return replace(row, commands=commands)
        start_s = round(time.monotonic() - began, 1)
        return self._measured(Row(self.topology, MEASURED, start_s, commands=commands), target)

    def _measured(self, row: Row, target: Target) -> Row:
        specs: dict[str, Spec] = {key: part.spec for key, part in self.known.parts.items()}
        seat = seat_of(self.tools, target, specs)
        for traffic in self.bench.traffic:
            row = self._traffic(row, target, traffic, seat)
        return row

    def _traffic(self, row: Row, target: Target, traffic: Traffic, seat: Seat) -> Row:
        seconds, began = self.task.bench_s, time.monotonic()
        try:
            found = self._ticking(
                traffic.name, lambda: measure(self.tools, target, seat, traffic, seconds)
            )
        except ToolError as error:
            if isinstance(error, Unreachable):
                raise
            return _without_result(row, error)
        found = replace(found, wall_s=round(time.monotonic() - began, 1))
        row = replace(row, results=(*row.results, found))
        if found.fault:
            why = f"{traffic.title}: {found.fault}"
            fix = f"see what the workers say, and run it yourself: {found.command}"
            return replace(row, state=FAILED, why=why, fix=fix)
        return row

    def _dead(self, target: Target, why: str, said: str, matches: tuple[Match, ...] = ()) -> Row:
        """Return the row of a start that failed, with its cause by the catalogue of failures."""
        words = words_of(target, target.workers[0])
        workers = [worker for worker in target.workers if not worker.is_service]
        lines = logs(self.tools, target, workers, LINES)
        found = matches or tuple(
            match for one in diagnose_hosts(self.tools, self.wish, target) for match in one.matches
        )
        text = [f"{key}: {line}" for key, own in lines.items() for line in value_of(own) or ()]
        log = keep_log(self.tools, self.bench, SHORT[self.topology], text)
        near = [line for line in text if line.partition(":")[0].rpartition("/")[2] in why] or text
        evidence = next(iter(last_words(near, 1)), "") or _last(said)
        row = Row(self.topology, FAILED, why=why, evidence=evidence, log=log)
        if not found:
            return replace(row, fix="no known cause: read its log")
        first = found[0]
        fix = "\n".join(filter(None, (first.fix, self._command(first, words, log))))
        why = f"{first.failure.title}: {' '.join(first.cause.split())}"
        return replace(row, why=why, cause=first.failure.id, evidence=first.evidence,
                       fix=addressed(fix, words))  # fmt: skip

    def _command(self, match: Match, words: Mapping[str, str], log: str) -> str:
        """Return what to run; the inventory does not know this deployment, whose log is kept."""
        command = addressed(match.command, words)
        return f"less {log}" if self.wish.deployment.name in command else command

    def _commands(self, target: Target) -> tuple[str, ...]:
        remote = self.tools.fleet.remote
        every = (printed(remote(worker.host), worker) for worker in target.workers)
        return tuple(filter(None, every))

    def _ticking(self, name: str, work: Callable[[], T]) -> T:
        """Do a step; meanwhile tell how long it has taken, and how long all that is left will."""
        topologies = (one for one in self.todo if not impossible(one, self.task.ground))
        steps = clock.steps(topologies, self.bench.traffic)
        todo = steps[steps.index((self.topology, name)) :]
        expected = clock.expected(todo[0], self.past)

        def tell(spent: float) -> None:
            share = min(spent / expected, 1.0) if expected else None
            rest = clock.left(todo, self.past, spent)
            left = clock.said(expected, rest, spent)
            text = f"{SHORT[self.topology]} {name}: {clock.span(spent)}, {left}"
            self.tools.listen(Event(self.task.host.name, "bench", text, share))

        with ticking(tell):
            return work()


def _without_result(row: Row, error: ToolError) -> Row:
    return replace(
        row, state=FAILED, why=error.message, evidence=_last(error.said), fix=error.remedy
    )


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
