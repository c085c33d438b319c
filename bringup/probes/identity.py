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
    uptime_s: int | None = None
    virtual: bool | None = None  # a virtual machine, by the CPU's hypervisor flag
    init: str = ""  # name of process 1


# One question a line, "key value"; hostname by uname since `hostname` may be missing.
SCRIPT = r"""
printf 'hostname %s\n' "$(cat "$R/etc/hostname" 2>/dev/null || uname -n)"
printf 'kernel %s\n' "$(uname -r)"
printf 'machine %s\n' "$(uname -m)"
printf 'uptime %s\n' "$(cat /proc/uptime 2>/dev/null)"
printf 'init %s\n' "$(cat /proc/1/comm 2>/dev/null)"
if grep -qw hypervisor /proc/cpuinfo 2>/dev/null; then echo 'virtual yes'
elif [ -r /proc/cpuinfo ]; then echo 'virtual no'; fi
cat "$R/etc/os-release" 2>/dev/null || cat "$R/usr/lib/os-release" 2>/dev/null
exit 0
"""


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
    uptime = re.match(r"\d+", told.get("uptime", ""))
    identity = Identity(
        told["hostname"].strip(),
        os_id=_bare(release.get("ID", "")),
        os_version=_bare(release.get("VERSION_ID", "")),
        os_name=_bare(release.get("PRETTY_NAME", "")),
        kernel=told.get("kernel", ""),
        machine=told.get("machine", ""),
        uptime_s=int(uptime[0]) if uptime else None,
        virtual={"yes": True, "no": False}.get(told.get("virtual", "")),
        init=told.get("init", ""),
    )
    return Known(identity, f"{identity.os_name or identity.os_id}, kernel {identity.kernel}")


def _bare(word: str) -> str:
    return word.strip().strip("\"'")


PROBE = Probe("identity", Identity, SCRIPT, parse)
