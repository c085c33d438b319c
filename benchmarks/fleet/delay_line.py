"""A line of fixed delay between two network namespaces: packets wait their time, in order.

    python delay_line.py NAMESPACE_A NAMESPACE_B ONE_WAY_MICROSECONDS

For kernels without tc netem. One TUN device, `line0`, is made in each namespace; "ready" is
printed when both are there. Ends with its process.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress

TUNSETIFF = 0x400454CA
TUN, NO_HEADER = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
DEVICE = b"line0"
LARGEST = 65_535
BURST = 64
IDLE_S = 5.0


def open_tun(namespace: str) -> int:
    """Return a TUN device made in a namespace; this process stays there."""
    space = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(space, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    os.close(space)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE, TUN | NO_HEADER))
    return device


class Lane:
    """One direction: what came in, each with the moment at which it goes out."""

    def __init__(self, source: int, target: int, delay_s: float) -> None:
        self.source, self.target, self.delay_s = source, target, delay_s
        self.waiting: deque[tuple[float, bytes]] = deque()

    def take(self) -> None:
        for _ in range(BURST):
            try:
                packet = os.read(self.source, LARGEST)
            except BlockingIOError:
                return
            self.waiting.append((time.monotonic() + self.delay_s, packet))

    def give(self) -> None:
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            packet = self.waiting.popleft()[1]
            with suppress(OSError):  # an end that is not up yet, or full: a wire loses it too
                os.write(self.target, packet)

    @property
    def pause_s(self) -> float:
        return self.waiting[0][0] - time.monotonic() if self.waiting else IDLE_S


def carry(lanes: tuple[Lane, ...]) -> None:
    """Carry packets until the process is ended."""
    sources = [lane.source for lane in lanes]
    while True:
        pause = max(0.0, min(lane.pause_s for lane in lanes))
        select.select(sources, [], [], pause)
        for lane in lanes:
            lane.take()
            lane.give()


def main(one: str, other: str, microseconds: str) -> None:
    """Make both ends and carry."""
    here, there = open_tun(one), open_tun(other)
    delay_s = int(microseconds) / 1e6
    print("ready", flush=True)
    carry((Lane(here, there, delay_s), Lane(there, here, delay_s)))


if __name__ == "__main__":
    main(*sys.argv[1:4])
