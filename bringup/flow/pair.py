"""Measure the rails between two hosts: one serves, the other writes, a rail after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.errors import Blocked, ToolError, UsageError
from ..core.event import Event
from ..core.facts import Facts
from ..core.host import Host
from ..core.reading import Absent, Known, Reading
from ..core.rules import Finding, Status
from ..core.script import Ask, Section, compose, seconds_for, split
from ..decide import assess
from ..edge.pool import side_by_side
from ..probes.infiniband import InfiniBand
from ..probes.rail import PORT, Rail, Written, client_ask, rails_between, read_rail, server_ask
from ..rules.rails import Measured, RailWorld, judge_rails
from .gather import gather
from .provision import probes_of
from .types import Order, Tools

BUSY = ("GPU-20", "SLU-04", "CTR-08")
"""Checks that fail where somebody works on a host: its network is not loaded then."""


def measure_pair(
    tools: Tools,
    order: Order,
    names: tuple[str, str],
    *,
    accept: Iterable[str] = (),
    measured_on: Callable[[Finding], None] = lambda _: None,
) -> Measured:
    """Measure every rail from the first named host to the second.

    Raises UsageError for other than two hosts, Blocked where one has no rail, lacks perftest or is
    in use, and Unreachable.
    """
    hosts = {host.name: host for host in order.hosts}
    if len(hosts) != 2 or any(name not in hosts for name in names):
        raise UsageError(f"cannot test {' '.join(hosts)}: name two hosts, no patterns")
    writer, target = (hosts[name] for name in names)
    facts = _facts(tools, order, accept)
    rails = rails_between(_devices(writer, facts), _devices(target, facts))
    if not rails:
        raise Blocked(
            f"cannot test {writer.name} to {target.name}: they have no active devices in common",
            remedy="bringup probe tells the state of each port (IB-02)",
        )
    address = target.reached_at
    worlds: list[RailWorld] = []
    findings: list[Finding] = []
    for number, rail in enumerate(rails):
        tools.listen(Event(writer.name, "pair", f"{rail}, {number + 1} of {len(rails)}"))
        world = RailWorld(rail, _measure(tools, (writer, target), rail, PORT + number, address))
        worlds.append(world)
        findings += judge_rails((world,), host=writer.name)
        measured_on(findings[-1])
    return Measured(writer.name, target.name, tuple(worlds), tuple(findings))


def pair(writer: str, target: str) -> tuple[str, str]:
    """Return both names; raises UsageError where they are not two hosts."""
    if writer and target and writer != target:
        return writer, target
    raise UsageError(
        f"cannot test a pair of {writer or 'nobody'} and {target or 'nobody'}: it has two hosts",
        remedy="bringup probe.pair --from HOST --to HOST",
    )


def _facts(tools: Tools, order: Order, accept: Iterable[str]) -> dict[str, Facts]:
    found = {}
    for name, one in gather(tools, order.hosts, probes_of(order)).items():
        if isinstance(one, ToolError):
            raise one
        _refuse_busy(order, order.inventory.hosts[name], one, set(accept))
        found[name] = one
    return found


def _refuse_busy(order: Order, host: Host, facts: Facts, accept: set[str]) -> None:
    for finding in assess(order.inventory, host, facts, None):
        if finding.id in BUSY and finding.status is Status.FAIL and finding.id not in accept:
            raise Blocked(
                f"cannot load the network of {host.name}: {'; '.join(finding.evidence)}",
                host=host.name, step="pair",
                remedy=f"wait until nobody works there; or --accept {finding.id}",
            )  # fmt: skip


def _devices(host: Host, facts: dict[str, Facts]) -> InfiniBand:
    reading = facts[host.name][InfiniBand]
    if isinstance(reading, Known):
        return reading.value
    raise Blocked(
        f"cannot test {host.name}: its RDMA devices are {reading.evidence or 'not told'}",
        host=host.name, step="pair", remedy=f"bringup probe --host {host.name} (IB-01, IB-16)",
    )  # fmt: skip


def _measure(
    tools: Tools, hosts: tuple[Host, Host], rail: Rail, port: int, address: str
) -> Reading[Written]:
    """Serve and write at the same time; the writer asks again until the server listens."""
    writer, target = hosts
    asks = {
        "serve": (target, server_ask(rail, port)),
        "write": (writer, client_ask(rail, port, address)),
    }
    said = side_by_side(asks, lambda which: _ask(tools, *asks[which]))
    reading = read_rail(said["write"], said["serve"])
    if isinstance(reading, Absent):
        raise Blocked(
            f"cannot measure from {writer.name} to {target.name}: {reading.evidence}",
            step="pair", remedy="install perftest on both hosts: apt-get install perftest",
        )  # fmt: skip
    return reading


def _ask(tools: Tools, host: Host, ask: Ask) -> Section:
    nonce = tools.nonce()
    script = compose((ask,), nonce=nonce, root=host.root)
    result = tools.fleet.remote(host.name).read(script, seconds=seconds_for((ask,)))
    return split(result.stdout, nonce=nonce)[ask.name]
