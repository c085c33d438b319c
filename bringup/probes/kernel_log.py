"""The kernel's log since boot: XIDs and what else it says of GPUs and NICs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class Xid:
    """One GPU error report. `at_s`: seconds since boot, None when the log gives a date."""

    code: int
    bus_id: str
    line: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True)
class KernelLog:
    """`complaints` are lines about GPUs, the driver or memory that are no XID.

    `switch_errors` are SXIDs: what NVSwitches report, on boards whose switches are on the bus.
    """

    xids: tuple[Xid, ...] | None = None
    complaints: tuple[str, ...] | None = None
    switch_errors: tuple[Xid, ...] = ()


# What checks look for; the whole log of a busy host is too long to carry.
WANTED = (
    "NVRM:", "SXid", "nouveau", "devmem_alloc_pagemap", "nvidia-uvm", "Hardware Error",
    "Uncorrect", "fallen off", "mlx5_core.*\\(assert\\|health\\|fw error\\)", "Out of memory",
    "Remounting filesystem read-only", "EDAC MC",
)  # fmt: skip

_GREP = " ".join(f"-e '{pattern}'" for pattern in WANTED)

SCRIPT = rf"""
if [ -n "$R" ]; then f=$R/var/log/dmesg; [ -r "$f" ] && cat "$f" || exit 4
elif t=$(dmesg 2>&1); then :
elif tool journalctl >/dev/null && t=$(journalctl -k -b -o short-monotonic --no-pager 2>&1) &&
  [ -n "$t" ]; then :
else printf '%s\n' "$t"; exit 4; fi
printf '%s\n' "$t" | grep -i {_GREP} | tail -n 400
echo 'end of log'
"""

# A MIG instance stands behind the address: ``Xid (PCI:0000:9b:00 GPU-I:05): 43``.
_XID = re.compile(
    r"NVRM: (?:GPU at \S+: )?Xid \((?:PCI:)?([0-9A-Fa-f:.]+)(?: [^)]*)?\): (\d+)(?:,|\s|$)"
)
_SXID = re.compile(r"SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d{1,6}), (?=Fatal|Non-fatal)")


def parse(section: Section) -> Reading[KernelLog]:
    """Return the log's telling lines; a log that may not be read is unknown."""
    if "Operation not permitted" in section.text or "ermission denied" in section.text:
        return Unknown("the kernel log may not be read by this user", section.first)
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    if section.exit != 0 or "end of log" not in section.text:
        return Unknown("the kernel log could not be read to the end", section.first)
    return Known(read(section.text.replace("end of log", "")), "")


def read(text: str) -> KernelLog:
    """Return XIDs and other complaints out of lines of dmesg or journalctl -k."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    others = tuple(line for line in lines if not _XID.search(line) and "SXid (" not in line)
    return KernelLog(_reports(_XID, lines), others, _reports(_SXID, lines))


def _reports(pattern: re.Pattern[str], lines: list[str]) -> tuple[Xid, ...]:
    return tuple(
        Xid(int(found[2]), found[1].lower(), line, _seconds(line))
        for line in lines
        if (found := pattern.search(line)) and len(found[2]) < 6
    )


def _seconds(line: str) -> float | None:
    found = re.match(r"\[\s*(\d+\.\d+)\]", line)
    return float(found[1]) if found else None


PROBE = Probe("kernel log", KernelLog, SCRIPT, parse, volatile=True)
