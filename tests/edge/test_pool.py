"""Many hosts side by side: bounded, one failure alone, a quick end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from bringup.core.errors import Interrupted, ToolError
from bringup.edge.pool import each, side_by_side

PATIENCE = 120


def test_every_item_comes_out_once_with_its_value() -> None:
    outcomes = {o.item: o.value for o in each(range(200), lambda n: n * n, limit=8)}
    assert outcomes == {n: n * n for n in range(200)}


def test_no_items_give_no_outcomes() -> None:
    assert list(each([], str)) == []


def test_one_failure_stops_its_item_alone() -> None:
    def work(n: int) -> float:
        return 1 / n

    outcomes = {o.item: o for o in each([0, 1, 2], work)}
    assert isinstance(outcomes[0].error, ZeroDivisionError)
    assert (outcomes[1].value, outcomes[2].value) == (1.0, 0.5)


def test_no_more_than_the_limit_work_at_once() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def work(n: int) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1

    assert len(list(each(range(60), work, limit=5))) == 60
    assert most[0] <= 5


def test_slow_item_holds_up_nobody() -> None:
    release = threading.Event()

    def work(n: int) -> int:
        if n == 0:
            assert release.wait(PATIENCE)
        return n

    order = []
    for outcome in each(range(20), work, limit=2):
        order.append(outcome.item)
        if len(order) == 19:
            release.set()
    assert order[-1] == 0


def test_deadline_gives_an_error_to_those_not_done() -> None:
    release = threading.Event()
    outcomes = {o.item: o for o in each([0, 1], lambda n: n or release.wait(PATIENCE),
                                        deadline_s=3)}  # fmt: skip
    release.set()
    assert outcomes[1].value == 1
    assert "the time for the whole run is up" in str(outcomes[0].error)
    assert isinstance(outcomes[0].error, ToolError)


def test_stop_ends_the_loop_and_takes_no_more_items() -> None:
    stop = threading.Event()
    taken = []

    def work(n: int) -> int:
        taken.append(n)
        stop.set()
        return n

    outcomes = list(each(range(100), work, limit=1, stop=stop))
    assert len(outcomes) == 100
    assert taken == [0]
    assert isinstance(outcomes[-1].error, Interrupted)


def test_leaving_the_loop_sets_stop() -> None:
    stop = threading.Event()
    for _ in each(range(5), str, stop=stop):
        break
    assert stop.is_set()


PROGRAM = """
import time
from bringup.edge.pool import side_by_side

def hang(n):
    if n == 0:
        print("up", flush=True)
    time.sleep(600)

try:
    side_by_side(range(100), hang)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_values_come_side_by_side_in_the_order_of_the_items() -> None:
    pause = {"first": 0.05, "last": 0.0}

    def work(name: str) -> int:
        time.sleep(pause[name])
        return len(name)

    assert list(side_by_side(pause, work).items()) == [("first", 5), ("last", 4)]


def test_error_of_one_item_is_raised_and_waits_for_nobody() -> None:
    release = threading.Event()
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        side_by_side([0, 1], lambda n: 1 // n and release.wait(PATIENCE))
    release.set()
    assert time.monotonic() - began < PATIENCE / 2


def test_ctrl_c_ends_at_once_though_all_threads_hang() -> None:
    words = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "up\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            process.wait(PATIENCE / 2)  # the threads hang for 600 s
        finally:
            process.kill()
