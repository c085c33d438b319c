"""What RDMA needs beside its devices: device files, counters that stand still, no detours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .text import answered, decimal, first, natural, rows, told, whole


@dataclass(frozen=True, slots=True)
class RdmaNodes:
    """Names in /dev/infiniband, e.g. uverbs0, umad0, rdma_cm."""

    names: tuple[str, ...]
    closed: tuple[str, ...] = ()  # with their modes: those that this login may not open


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """Error counters of each RDMA device's port since its driver was loaded.

    `at_s` is the host's uptime when they were read. Counters that a device refuses are left out.
    """

    at_s: float
    by_device: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LaterLinkCounters(LinkCounters):
    """The same counters, read at the end of the same trip: the difference is what happens now."""


@dataclass(frozen=True, slots=True)
class AccessControl:
    """PCI bridges whose access control services send traffic between devices to the processor."""

    validating: tuple[str, ...]  # bridges with SrcValid+
    bridges: int


NODES = r"""
[ -d "$R/dev" ] || { echo "no folder /dev"; exit 4; }
[ -d "$R/dev/infiniband" ] || { echo "absent: no folder /dev/infiniband"; exit 3; }
ls "$R/dev/infiniband" && printf 'end\tof nodes\n'
"""


def parse_nodes(section: Section) -> Reading[RdmaNodes]:
    """Return the device files."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    names, end, _ = answer.value.partition("end\tof nodes")
    return nodes_of(names) if end else Unknown("the list was cut off", section.first)


def nodes_of(text: str) -> Reading[RdmaNodes]:
    """Return device files from what ``ls /dev/infiniband`` prints, in one line or many."""
    names = tuple(sorted(text.split(), key=natural))
    odd = [name for name in names if not re.fullmatch(r"[a-z_]+[0-9]*|by-(ibdev|path)", name)]
    if odd:
        return Unknown(f"not the name of a device file: {odd[0]}")
    return Known(RdmaNodes(names), " ".join(names)) if names else Absent("/dev/infiniband is empty")


COUNTERS = (
    "symbol_error", "link_downed", "link_error_recovery", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors", "port_rcv_errors", "port_xmit_discards",
)  # fmt: skip
HARDWARE_COUNTERS = ("rnr_nak_retry_err", "out_of_buffer", "local_ack_timeout_err")

# Bridges are skipped: reading counters of restricted functions floods the kernel log
# (leptonai/gpud#1164). They have no network device, share their slot, and say SW_MNG.
SCRIPT = rf"""
c=$R/sys/class/infiniband
[ -d "$R/sys/class" ] || {{ echo "no folder /sys/class"; exit 4; }}
[ -d "$c" ] || {{ echo "absent: no folder /sys/class/infiniband"; exit 3; }}
u=; {{ read -r u _ <"$R/proc/uptime"; }} 2>/dev/null; printf 'uptime\t%s\n' "$u"
for f in "$c"/*; do
  [ -d "$f/ports" ] || continue
  p=$(readlink -f "$f/device"); p=${{p%.*}}
  n=0; for g in "$p".[0-7]; do [ -d "$g/infiniband" ] && n=$((n + 1)); done
  [ $n -gt 2 ] && continue
  for q in "$f"/ports/*; do
    s=; {{ read -r s <"$q/state"; }} 2>/dev/null
    case $s in *ACTIVE*) ;; *) continue ;; esac
    for k in {" ".join(f"counters/{name}" for name in COUNTERS)} \
      {" ".join(f"hw_counters/{name}" for name in HARDWARE_COUNTERS)}; do
      v=; {{ read -r v <"$q/$k"; }} 2>/dev/null
      [ -z "$v" ] || printf '%s\t%s\t%s\n' "${{f##*/}}" "${{k##*/}}" "$v"
    done
  done
done
printf 'end\tof counters\n'
"""


def parse_counters(section: Section) -> Reading[LinkCounters]:
    """Return the counters of all active ports, summed by device."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    uptime = decimal(first(found, "uptime"))
    if first(found, "end") != "of counters" or uptime is None:
        return Unknown("the list of counters was cut off", section.first)
    by_device: dict[str, dict[str, int]] = {}
    for device, name, text in (row for row in rows(answer.value) if len(row) == 3):
        value = whole(text)
        if name in (*COUNTERS, *HARDWARE_COUNTERS) and value is not None:
            counters = by_device.setdefault(device, {})
            counters[name] = counters.get(name, 0) + value
    return Known(LinkCounters(uptime, by_device), f"counters of {len(by_device)} active devices")


def parse_later(section: Section) -> Reading[LaterLinkCounters]:
    """Return the second sample."""
    reading = parse_counters(section)
    if not isinstance(reading, Known):
        return reading
    sample = reading.value
    return Known(LaterLinkCounters(sample.at_s, sample.by_device), reading.evidence)


ACS = r"""
tool lspci >/dev/null || { echo "lspci: not found"; exit 4; }
[ "$(id -u)" = 0 ] || { echo "permission denied: only root may read PCI capabilities"; exit 4; }
ask lspci -vv -D -d ::0604 2>/dev/null | awk '
  /^[0-9a-f]+:/ { n++; bridge = $1 }
  /ACSCtl:.*SrcValid\+/ { print "validating\t" bridge }
  END { print "bridges\t" n + 0 }'
"""


def parse_acs(section: Section) -> Reading[AccessControl]:
    """Return the bridges with ``ACSCtl: SrcValid+``."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    bridges = whole(first(found, "bridges"))
    if not bridges:
        return Unknown("lspci lists no bridge", section.first)
    control = AccessControl(found.get("validating", ()), bridges)
    line = f"SrcValid+ on {len(control.validating)} of {bridges} PCI bridges"
    return Known(control, line)


FIRST = Probe("link_counters", LinkCounters, SCRIPT, parse_counters, volatile=True)
AGAIN = Probe("link_counters_again", LaterLinkCounters, SCRIPT, parse_later, volatile=True)
"""Asked last, so that the rest of the trip is the time between both samples."""

PROBES = (
    FIRST,
    Probe("rdma_nodes", RdmaNodes, NODES, parse_nodes),
    Probe("pci_access_control", AccessControl, ACS, parse_acs, seconds=6, tool="lspci"),
    AGAIN,
)
