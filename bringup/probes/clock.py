"""The host's clock: is it synchronised, and how far is it from the controller's."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class Clock:
    """`epoch_s` is the host's time when it answered; `offset_s` its lead over the controller.

    The offset is set by `with_trip`, since only the caller knows when it asked. `by` says who
    told: timedatectl, chronyc.
    """

    synchronized: bool | None = None
    epoch_s: float | None = None
    offset_s: float | None = None
    uncertain_s: float | None = None
    by: str = ""
    zone: str = ""


SCRIPT = r"""
if tool timedatectl >/dev/null && t=$(ask timedatectl show -p NTPSynchronized 2>/dev/null); then
  printf 'timedatectl %s\n' "$t"
fi
if tool chronyc >/dev/null; then ask chronyc -n tracking 2>&1 | sed 's/^/chronyc /'; fi
printf 'epoch %s\n' "$(date +%s.%N)"
"""


def parse(section: Section) -> Reading[Clock]:
    """Return the clock; `synchronized` stays None where neither tool could tell."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    chrony = read_chrony("\n".join(re.findall(r"(?m)^chronyc (.*)$", section.text)))
    systemd = read_timedatectl("\n".join(re.findall(r"(?m)^timedatectl (.*)$", section.text)))
    best = chrony if chrony.synchronized is not None else systemd
    epoch = re.search(r"(?m)^epoch (\d+)(\.\d+)?", section.text)
    if epoch is None:
        return Unknown("the host told no time", section.first)
    clock = replace(best, epoch_s=float(epoch[1] + (epoch[2] or "")))
    return Known(clock, section.first)


def read_timedatectl(text: str) -> Clock:
    """Return what `timedatectl`, plain or `show`, tells."""
    found = re.search(r"(?:NTPSynchronized=|System clock synchronized:\s*)(yes|no)\b", text)
    zone = re.search(r"Time zone:\s*(\S+)", text)
    synchronized = found[1] == "yes" if found else None
    return Clock(synchronized, by="timedatectl" if found else "", zone=zone[1] if zone else "")


def read_chrony(text: str) -> Clock:
    """Return what `chronyc tracking` tells; its "slow of NTP time" is a negative lead."""
    leap = re.search(r"Leap status\s*:\s*(.+)", text)
    if leap is None:
        return Clock()
    drift = re.search(r"System time\s*:\s*(\d+\.\d+) seconds (slow|fast) of NTP time", text)
    sign = -1.0 if drift and drift[2] == "slow" else 1.0
    return Clock(
        synchronized="Not synchronised" not in leap[1],
        offset_s=sign * float(drift[1]) if drift else None,
        by="chronyc",
    )


def with_trip(reading: Reading[Clock], sent_s: float, received_s: float) -> Reading[Clock]:
    """Return the clock with its lead over the controller, whose times frame the question.

    The host answered somewhere between both, so the lead is uncertain by half of the trip.
    """
    if not isinstance(reading, Known) or reading.value.epoch_s is None:
        return reading
    middle, half = (sent_s + received_s) / 2, abs(received_s - sent_s) / 2
    clock = replace(reading.value, offset_s=reading.value.epoch_s - middle, uncertain_s=half)
    return Known(clock, f"{clock.offset_s:+.3f} s against the controller, within {half:.3f} s")


PROBE = Probe("clock", Clock, SCRIPT, parse, tool="systemctl", volatile=True)
