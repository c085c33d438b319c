"""Who the host is: names, operating system, kernel, and what it runs on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class Identity:
    """Names and versions; "" where the host does not tell. `virtual` None: nobody could say."""

    hostname: str
    os_id: str = ""  # ubuntu, debian, rhel, …
    os_version: str = ""
    os_name: str = ""
    kernel: str = ""
    machine: str = ""  # x86_64, aarch64
    virtual: bool | None = None  # a virtual machine, by the CPU's hypervisor flag
    init: str = ""  # name of process 1


@dataclass(frozen=True, slots=True)
class Uptime:
    """Seconds since the host started."""

    seconds: int


# One question a line, "key value"; hostname by uname since `hostname` may be missing.
SCRIPT = r"""
printf 'hostname %s\n' "$(cat "$R/etc/hostname" 2>/dev/null || uname -n)"
k=$(cat "$R/proc/sys/kernel/osrelease" 2>/dev/null) || k=$(uname -r)
m=$(ask uname -m 2>/dev/null) || m=$(uname -m)
printf 'kernel %s\nmachine %s\n' "$k" "$m"
printf 'init %s\n' "$(cat "$R/proc/1/comm" 2>/dev/null)"
c=$R/proc/cpuinfo
if grep -qw hypervisor "$c" 2>/dev/null; then echo 'virtual yes'
elif [ -r "$c" ]; then echo 'virtual no'; fi
cat "$R/etc/os-release" 2>/dev/null || cat "$R/usr/lib/os-release" 2>/dev/null
exit 0
"""


UPTIME = 'cat "$R/proc/uptime" 2>/dev/null || cat /proc/uptime'


def parse(section: Section) -> Reading[Identity]:
    """Return the identity; a section without a host name is unknown."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    lines = section.text.splitlines()
    told = dict(line.split(" ", 1) for line in lines if re.match(r"[a-z]+ \S", line))
    release = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))
    if not told.get("hostname"):
        return Unknown("no host name was told", section.first)
    identity = Identity(
        told["hostname"].strip(),
        os_id=_bare(release.get("ID", "")),
        os_version=_bare(release.get("VERSION_ID", "")),
        os_name=_bare(release.get("PRETTY_NAME", "")),
        kernel=told.get("kernel", ""),
        machine=told.get("machine", ""),
        virtual={"yes": True, "no": False}.get(told.get("virtual", "")),
        init=told.get("init", ""),
    )
    return Known(identity, f"{identity.os_name or identity.os_id}, kernel {identity.kernel}")


def _bare(word: str) -> str:
    return word.strip().strip("\"'")


def parse_uptime(section: Section) -> Reading[Uptime]:
    """Read /proc/uptime."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    found = re.fullmatch(r"(\d{1,10})\.\d+ \d+\.\d+", section.first)
    if found is None:
        return Unknown("/proc/uptime told no number", section.first)
    return Known(Uptime(int(found[1])), f"up for {int(found[1])} s")


PROBES = (
    Probe("identity", Identity, SCRIPT, parse),
    Probe("uptime", Uptime, UPTIME, parse_uptime, volatile=True),
)
