"""IB-07 and IB-08: do link errors rise, and do links stay up?"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Row, Seen, World, failed, passed, skipped, warned
from ..probes.hca import InfiniBand
from ..probes.rdma import LaterLinkCounters, LinkCounters
from .judging import SOFT, not_told, unread

SENTINEL = "https://github.com/NVIDIA/NVSentinel"
FLAPS_A_DAY = 5  # Azure's limit

PER_SECOND = {
    "symbol_error": 10.0,
    "port_rcv_errors": 10.0,
    "port_xmit_discards": 100.0,
    "link_error_recovery": 5 / 60,
}
"""Increases a second above which a counter warns (NVSentinel)."""

NEVER = (
    "link_downed", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
    "rnr_nak_retry_err",
)  # fmt: skip
"""Counters that must not rise at all while we look (NVSentinel)."""

SYMBOLS_AN_HOUR = 120.0  # NVSentinel, over the time since the start


def _counters(world: World) -> Seen:
    first, later = world.facts[LinkCounters], world.facts[LaterLinkCounters]
    devices = world.facts[InfiniBand]
    if isinstance(first, Absent) or isinstance(devices, Absent):
        return skipped("no RDMA device on this host")
    if isinstance(first, Unknown):
        return unread(first)
    wanted = _compute_names(world)
    now = later.value if isinstance(later, Known) else first.value
    gone = now.at_s - first.value.at_s
    bad: list[str] = []
    doubtful: list[str] = []
    for device in (name for name in now.by_device if wanted is None or name in wanted):
        before, after = first.value.by_device.get(device, {}), now.by_device[device]
        rise = {name: value - before.get(name, value) for name, value in after.items()}
        bad += [f"{device}: {n} +{rise[n]} in {gone:.1f} s" for n in NEVER if rise.get(n, 0) > 0]
        bad += _symbols(device, after, now.at_s)
        doubtful += [
            f"{device}: {name} +{rise[name]} in {gone:.1f} s"
            for name, most in PER_SECOND.items()
            if gone > 0 and rise.get(name, 0) / gone > most
        ]
    if bad:
        return failed(*bad)
    return warned(*doubtful) if doubtful else passed(f"clean over {gone:.1f} s")


def _symbols(device: str, counters: Mapping[str, int], uptime_s: float) -> list[str]:
    count = counters.get("symbol_error", 0)
    rate = count / max(uptime_s / 3600, 1.0)
    if rate <= SYMBOLS_AN_HOUR:
        return []
    return [f"{device}: {count} symbol errors since the start, {rate:.0f} an hour"]


def _compute_names(world: World) -> set[str] | None:
    reading = world.facts[InfiniBand]
    return {d.name for d in reading.value.compute} if isinstance(reading, Known) else None


def _flaps(world: World) -> Seen:
    reading = world.facts[LinkCounters]
    if isinstance(reading, Absent) or isinstance(world.facts[InfiniBand], Absent):
        return skipped("no RDMA device on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    days = max(reading.value.at_s / 86400, 1.0)
    wanted = _compute_names(world)
    counts = {
        device: counters["link_downed"]
        for device, counters in reading.value.by_device.items()
        if "link_downed" in counters and (wanted is None or device in wanted)
    }
    often = {d: n for d, n in counts.items() if n / days >= FLAPS_A_DAY}
    if not counts:
        return not_told("how often links went down")
    if often:
        return failed(*(f"{d}: link went down {n} times in {days:.1f} d" for d, n in often.items()))
    return passed(f"at most {max(counts.values())} link losses since the start")


ROWS: tuple[Row[World], ...] = (
    Row(
        "IB-07", "Link errors do not rise", _counters,
        "rising errors mean a bad cable or optics, and retransmissions that stall collectives",
        SENTINEL,
        "drain, reseat or replace cable and optics of the port; reset counters: perfquery -R",
        SOFT,
    ),
    Row(
        "IB-08", "Links stay up", _flaps,
        "a link that comes and goes ends every job that uses it",
        "https://github.com/Azure/azurehpc-health-checks",
        "drain, replace cable or optics; the switch log names the port", SOFT,
    ),
)  # fmt: skip
