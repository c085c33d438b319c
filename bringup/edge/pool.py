"""Many hosts side by side: a bounded number of threads, results as they come, a quick end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..core.errors import Interrupted, ToolError

T = TypeVar("T")
R = TypeVar("R")

LIMIT = 64
"""Most hosts at work at a time; more threads bring nothing (docs/ssh.md)."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T, R]):
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
) -> Iterator[Outcome[T, R]]:
    """Do the work for every item, and yield each outcome when it is there.

    An item is taken when a thread comes free, so a slow one holds up nobody. Items that are not
    done when `stop` is set or `deadline_s` seconds have passed come out with an error. Leaving
    the loop early (Ctrl-C as well) sets `stop` and waits for nobody: threads are daemons, and
    closing the fleet wakes those that wait on a line.
    """
    stop = stop or threading.Event()
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    done: queue.SimpleQueue[Outcome[T, R]] = queue.SimpleQueue()
    pending = list(items)
    for item in pending:
        waiting.put(item)
    for number in range(min(limit, len(pending))):
        name = f"host-{number}"
        threading.Thread(
            target=_serve, args=(waiting, done, work, stop), name=name, daemon=True
        ).start()
    ends_at = None if deadline_s is None else time.monotonic() + deadline_s
    try:
        while pending:
            outcome = _next(done, ends_at, stop)
            if outcome is None:
                break
            pending.remove(outcome.item)
            yield outcome
        yield from (Outcome(item, error=_left_undone(stop)) for item in pending)
    finally:
        stop.set()


SLICE_S = 0.2


def _next(
    done: queue.SimpleQueue[Outcome[T, R]], ends_at: float | None, stop: threading.Event
) -> Outcome[T, R] | None:
    """Return the next outcome, or None when the time is up or the run was stopped."""
    while True:
        try:
            return done.get(timeout=SLICE_S)
        except queue.Empty:
            if stop.is_set() or (ends_at is not None and time.monotonic() > ends_at):
                return None


def _serve(
    waiting: queue.SimpleQueue[T],
    done: queue.SimpleQueue[Outcome[T, R]],
    work: Callable[[T], R],
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        try:
            item = waiting.get_nowait()
        except queue.Empty:
            return
        done.put(_attempt(item, work))


def _attempt(item: T, work: Callable[[T], R]) -> Outcome[T, R]:
    began = time.monotonic()
    try:
        value = work(item)
    except Exception as error:  # noqa: BLE001 - it stops this item alone, and is shown as it is
        return Outcome(item, error=error, seconds=time.monotonic() - began)
    return Outcome(item, value, seconds=time.monotonic() - began)


def _left_undone(stop: threading.Event) -> ToolError:
    if stop.is_set():
        return Interrupted("cannot finish: the run was stopped")
    return ToolError(
        "cannot finish: the time for the whole run is up",
        remedy="run again, what is done stays done; or raise the limit",
    )
