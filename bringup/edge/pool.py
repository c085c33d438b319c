"""Many hosts side by side: a bounded number of threads, results as they come, a quick end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..core.errors import Interrupted, ToolError

T = TypeVar("T")
R = TypeVar("R")

LIMIT = 64
"""Most hosts at work at a time; more threads bring nothing (docs/ssh.md)."""


@dataclass(frozen=True, slots=True)
class ItemOutcome(Generic[T, R]):
    """What became of one item: a value, or the error that stopped it alone."""

    item: T
    value: R | None = None
    error: Exception | None = None
    seconds: float = 0.0


def each(
    items: Iterable[T],
    work: Callable[[T], R],
    *,
    limit: int = LIMIT,
    deadline_s: float | None = None,
    stop: threading.Event | None = None,
    then: Callable[[ItemOutcome[T, R]], Iterable[T]] | None = None,
) -> Generator[ItemOutcome[T, R]]:
    """Do the work for every item, and yield each outcome when it is there.

    An item is taken when a thread comes free, so a slow one holds up nobody. `then` is asked, in
    the caller's thread, what an outcome makes possible: items that join the queue. Items that are
    not done when `stop` is set or `deadline_s` seconds have passed come out with an error. Leaving
    the loop early (Ctrl-C as well) sets `stop` and waits for nobody: threads are daemons, and
    closing the fleet wakes those that wait on a line.
    """
    crew = _Crew(work, limit, stop or threading.Event())
    ends_at = None if deadline_s is None else time.monotonic() + deadline_s
    try:
        crew.take(items)
        while crew.pending:
            outcome = crew.next(ends_at)
            if outcome is None:
                break
            if then is not None:
                crew.take(then(outcome))
            yield outcome
        yield from (
            ItemOutcome(item, error=_left_undone(crew.stop)) for item in crew.pending.values()
        )
    finally:
        crew.dismiss()


def side_by_side(items: Iterable[T], work: Callable[[T], R], *, limit: int = LIMIT) -> dict[T, R]:
    """Return what the work gave for every item, in their order; raise the first error of one.

    An error and Ctrl-C end the wait at once: what did not begin never does.
    """
    wanted, found = tuple(items), dict[T, R]()

    def keep(item: T) -> None:
        found[item] = work(item)

    with closing(each(wanted, keep, limit=limit)) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
    return {item: found[item] for item in wanted}


SLICE_S = 0.2


class _Crew(Generic[T, R]):
    """Threads that share one queue; started as work comes in, never more than the limit."""

    def __init__(self, work: Callable[[T], R], limit: int, stop: threading.Event) -> None:
        self.stop = stop
        self.pending: dict[int, T] = {}
        self._work = work
        self._limit = limit
        self._count = 0
        self._threads = 0
        self._waiting: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, ItemOutcome[T, R]]] = queue.SimpleQueue()

    def take(self, items: Iterable[T]) -> None:
        """Queue items; start threads where there are fewer than items and the limit."""
        for item in items:
            self.pending[self._count] = item
            self._waiting.put((self._count, item))
            self._count += 1
        while self._threads < min(self._limit, len(self.pending)):
            name = f"host-{self._threads}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._threads += 1

    def next(self, ends_at: float | None) -> ItemOutcome[T, R] | None:
        """Return the next outcome, or None when the time is up or the run was stopped."""
        while True:
            try:
                number, outcome = self._done.get(timeout=SLICE_S)
            except queue.Empty:
                if self.stop.is_set() or (ends_at is not None and time.monotonic() > ends_at):
                    return None
            else:
                del self.pending[number]
                return outcome

    def dismiss(self) -> None:
        """Let every thread go home when it has done what it is at."""
        self.stop.set()
        for _ in range(self._threads):
            self._waiting.put(None)

    def _serve(self) -> None:
        while (taken := self._waiting.get()) is not None and not self.stop.is_set():
            number, item = taken
            self._done.put((number, _attempt(item, self._work)))


def _attempt(item: T, work: Callable[[T], R]) -> ItemOutcome[T, R]:
    began = time.monotonic()
    try:
        value = work(item)
    except Exception as error:  # noqa: BLE001 - it stops this item alone, and is shown as it is
        return ItemOutcome(item, error=error, seconds=time.monotonic() - began)
    return ItemOutcome(item, value, seconds=time.monotonic() - began)


def _left_undone(stop: threading.Event) -> ToolError:
    if stop.is_set():
        return Interrupted("cannot finish: the run was stopped")
    return ToolError(
        "cannot finish: the time for the whole run is up",
        remedy="run again, what is done stays done; or raise the limit",
    )
