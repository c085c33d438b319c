"""Opt-in: how fast one RDMA device of a host writes to one of another host (IB-15).

`ib_write_bw` of perftest measures: it serves on one host and is a client on the other. The two
find each other over TCP, so that a closed port there is told apart from a rail that moves no data.
What it says: https://github.com/linux-rdma/perftest/issues/132 (a run that works), 295 and 342
(no answer over the rail), pull request 228 (no server).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import quote
from .hca import Hca, InfiniBand, rail_order
from .text import decimal

TOOL = "ib_write_bw"
MOVES_S = 3
"""Seconds during which data moves."""

TRY_S = 10
SERVER_S = 25
CLIENT_S = 20
"""Most seconds for one try, and for both sides; the server outlives a client that waits for it."""

PORT = 18515
"""perftest's own port; each rail takes the next one, since a port just left may not be free."""

SIDE = {"client": "host that writes", "server": "host that is written to"}

BROKEN = re.compile(
    r"(?im)^.*(?:failed status \d+|completion with error|failed to modify qp|"
    r"unable to (?:find|open(?! file)|create)|couldn't (?:create|initialize|allocate|post|get)).*$"
)
NO_SERVER = re.compile(r"(?im)^.*(?:couldn't connect|unexpected end of file|unable to init the).*$")
ROW = re.compile(r"(?m)^\s*\d+\s+\d+\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s*$")


@dataclass(frozen=True, slots=True)
class Rail:
    """A device of one host and the one of another that it writes to. `rate_gb_s` in Gb/s."""

    device: Hca
    peer: Hca

    @property
    def rate_gb_s(self) -> float | None:
        """What the slower of both ports promises; None where neither tells."""
        rates = [one.rate_gb_s for one in (self.device, self.peer) if one.rate_gb_s is not None]
        return min(rates, default=None)

    def __str__(self) -> str:
        same = self.device.name == self.peer.name
        return self.device.name if same else f"{self.device.name} to {self.peer.name}"


@dataclass(frozen=True, slots=True)
class Written:
    """What one rail gave: its bandwidth in Gb/s, or None and how the transfer broke."""

    gb_s: float | None
    trouble: str = ""


def rails_between(one: InfiniBand, other: InfiniBand) -> tuple[Rail, ...]:
    """Return the active compute devices of two hosts in pairs: of one name where both have it.

    A switched fabric with a plane a rail joins devices of the same place; names tell the place
    between hosts of one kind. Devices without a namesake are paired in the order of their GPUs.
    """
    mine, theirs = list(rail_order(one)), list(rail_order(other))
    names = {device.name: device for device in theirs}
    paired = [Rail(device, names[device.name]) for device in mine if device.name in names]
    taken = {rail.device.name for rail in paired}
    rest = zip(
        (device for device in mine if device.name not in taken),
        (device for device in theirs if device.name not in taken),
        strict=False,
    )
    return (*paired, *(Rail(device, peer) for device, peer in rest))


START = f"""\
t=$(tool {TOOL}) || {{ echo '{TOOL}: not found'; exit 127; }}
lines=$(tool stdbuf) && lines="$lines -oL"
"""
"""perftest keeps what it says in a buffer, which a run that hangs would take along."""


def server_ask(rail: Rail, port: int) -> Ask:
    """Return what the host that is written to runs: it ends after one client."""
    return Ask("server", f'{START}exec $lines "$t" {_words(rail.peer, port)} 2>&1\n', SERVER_S)


def client_ask(rail: Rail, port: int, address: str) -> Ask:
    """Return what the writing host runs; it asks again until the server listens."""
    command = f"{_words(rail.device, port)} {quote(address)}"
    script = (
        f"{START}n=0\n"
        "while :; do\n"
        f'  said=$(timeout -k 1 {TRY_S} $lines "$t" {command} 2>&1); code=$?\n'
        '  case $said in *"ouldn\'t connect"*) n=$((n + 1)) ;; *) break ;; esac\n'
        '  [ "$n" -lt 12 ] || break\n'
        "  sleep 0.5\n"
        "done\n"
        "printf '%s\\n' \"$said\"\n"
        "exit $code\n"
    )
    return Ask("client", script, CLIENT_S)


def _words(device: Hca, port: int) -> str:
    words = ("-d", device.name, "-i", str(device.port), "--report_gbits", "-F",
             "-D", str(MOVES_S), "-p", str(port))  # fmt: skip
    return " ".join(quote(word) for word in words)


def read_rail(client: Section, server: Section) -> Reading[Written]:
    """Return what a rail gave; what kept both sides from meeting is unknown, no slow rail."""
    missing = next((one for one in (client, server) if one.exit == 127), None)
    if missing is not None:
        return Absent(f"{missing.first} on the {SIDE[missing.name]}")
    row = ROW.search(client.text)
    if row is not None and client.exit == 0:
        rate = decimal(row[2])
        line = " ".join(row[0].split())
        return Known(Written(rate), line) if rate is not None else Unknown("no rate told", line)
    broken = BROKEN.findall(client.text) or BROKEN.findall(server.text)
    if broken:
        said = "; ".join(line.strip() for line in broken[:2])
        return Known(Written(None, said), said)
    apart = NO_SERVER.search(client.text)
    if apart is not None:
        return Unknown("the two sides did not meet over TCP", apart[0].strip())
    if client.trouble and "remote address" in client.text:
        return Known(Written(None, f"connected, but no data moved within {TRY_S} s"))
    return Unknown(client.trouble or f"{TOOL} ended with exit {client.exit}", client.first)
