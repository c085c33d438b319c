"""Tell now and then, beside some work, how long it has been at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 10.0


@contextmanager
def ticking(tell: Callable[[float], None], every_s: float = EVERY_S) -> Iterator[None]:
    """Call `tell` with the seconds gone, at once and every so often, until the work is done."""
    over, began = threading.Event(), time.monotonic()

    def tick() -> None:
        while not over.wait(every_s):
            tell(time.monotonic() - began)

    tell(0.0)
    thread = threading.Thread(target=tick, name="ticker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(1.0)
