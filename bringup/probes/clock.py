"""The host's clock: is it synchronised, and how far is it from the controller's."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..core.facts import Facts, Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from .rdma import LaterLinkCounters


@dataclass(frozen=True, slots=True)
class Clock:
    """`epoch_s` is the host's time when it answered, at `uptime_s` since its start.

    `offset_s` is its lead over the controller, in doubt by `uncertain_s`; `timed` sets both, since
    only the caller knows when it asked. `by` says who told: timedatectl, chronyc.
    """

    synchronized: bool | None = None
    epoch_s: float | None = None
    uptime_s: float | None = None
    offset_s: float | None = None
    uncertain_s: float | None = None
    by: str = ""
    zone: str = ""


SCRIPT = r"""
if tool timedatectl >/dev/null && t=$(ask timedatectl show -p NTPSynchronized 2>/dev/null); then
  printf 'timedatectl %s\n' "$t"
fi
if tool chronyc >/dev/null; then ask chronyc -n tracking 2>&1 | sed 's/^/chronyc /'; fi
u=; { read -r u <"$R/proc/uptime"; } 2>/dev/null
printf 'epoch %s\nuptime %s\n' "$(date +%s.%N)" "${u%% *}"
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
    since = re.search(r"(?m)^uptime (\d+(?:\.\d+)?)$", section.text)
    clock = replace(
        best,
        epoch_s=float(epoch[1] + (epoch[2] or "")),
        uptime_s=float(since[1]) if since else None,
    )
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


def timed(facts: Facts, sent_s: float, received_s: float) -> Facts:
    """Return facts whose clock knows its lead over the controller, whose times frame the trip.

    The host was asked after `sent_s` and said its last word before `received_s`. Where the uptime
    of that last word is known, the lead is in doubt by the network's part of the trip alone.
    """
    reading = facts[Clock]
    if not isinstance(reading, Known) or reading.value.epoch_s is None:
        return facts
    clock, last = reading.value, facts[LaterLinkCounters]
    epoch = end = reading.value.epoch_s
    if isinstance(last, Known) and clock.uptime_s is not None:
        end = epoch + max(0.0, last.value.at_s - clock.uptime_s)
    least, most = end - received_s, epoch - sent_s
    offset, unsure = (least + most) / 2, abs(most - least) / 2
    line = f"{offset:+.3f} s against the controller, within {unsure:.3f} s"
    return facts.replace(Clock, Known(replace(clock, offset_s=offset, uncertain_s=unsure), line))


PROBE = Probe("clock", Clock, SCRIPT, parse, tool="systemctl", volatile=True)
