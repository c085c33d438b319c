"""The host's lock for as long as a shipment has parts there: who prunes or ships stays outside.

A lock goes with its line, and a shipment goes on after a dropped line. So the lock is taken anew
then, and what lies on the host is looked at again: it was anybody's in between.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from ..core.errors import LockHeld
from ..core.remote import Remote
from ..edge.actions import SILENCE_S

LOOK_S = 1.0
"""Seconds between two tries for a lock that was lost."""

WAIT_S = SILENCE_S + 30.0
"""Longest wait for it: the host lets a holder go that it has not heard for `SILENCE_S`."""


@dataclass(slots=True)
class Claim:
    """One shipment's hold of one host. Untaken it does nothing: the caller may hold the lock."""

    remote: Remote
    doing: str
    times: int = 0  # that the lock was taken
    _is_wanted: bool = False
    _held: ExitStack = field(default_factory=ExitStack)

    def take(self) -> None:
        """Take the lock; raises LockHeld where somebody else is at work."""
        if not self._is_wanted:
            self._enter()
            self._is_wanted = True

    def renew(self) -> None:
        """Take a lock anew whose line has dropped; the host may still hear its old holder.

        Raises Unreachable while the line is down; then it may be called again.
        """
        if not self._is_wanted:
            return
        self._held.close()
        ends_at = time.monotonic() + WAIT_S
        while True:
            try:
                self._enter()
            except LockHeld:
                if time.monotonic() > ends_at:
                    raise
                time.sleep(LOOK_S)
            else:
                return

    def release(self) -> None:
        """Let the host go; never raises."""
        self._is_wanted = False
        self._held.close()

    def _enter(self) -> None:
        self._held.enter_context(self.remote.lock(self.doing))
        self.times += 1
