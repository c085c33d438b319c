"""Fabric manager and its prerequisites on NVLink 5 boards: unit, versions, subnet manager."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .parts import NOT_ASKED
from .readers import systemd


@dataclass(frozen=True, slots=True)
class FabricManager:
    """`state` is systemd's ActiveState ("" when not told), `said` its log's telling lines.

    `installed` None: nobody could say. `nvlsm`, `ibstat`, `libnvsdm` say whether the program or
    library is on the host.
    """

    state: str = ""
    enabled: str = ""
    restarts: int | None = None
    result: str = ""
    version: Reading[str] = NOT_ASKED
    package: str = ""
    nvlsm: bool | None = None
    ibstat: bool | None = None
    libnvsdm: bool | None = None
    mode: str = ""  # FABRIC_MODE of its configuration
    said: tuple[str, ...] = ()


SCRIPT = r"""
u=nvidia-fabricmanager
if tool systemctl >/dev/null; then
  ask systemctl show "$u" -p LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result 2>&1 |
    sed 's/^/unit /'
fi
if tool nv-fabricmanager >/dev/null; then ask nv-fabricmanager --version 2>&1 | sed 's/^/version /'
else echo 'absent nv-fabricmanager'; fi
n=no; for f in "$R/opt/nvidia/nvlsm/sbin/nvlsm" "$R/usr/sbin/nvlsm" "$R/usr/bin/nvlsm"; do
  [ -e "$f" ] && n=yes; done; echo "has nvlsm $n"
tool ibstat >/dev/null && echo 'has ibstat yes' || echo 'has ibstat no'
n=no; for f in "$R"/usr/lib/*/libnvsdm.so* "$R"/usr/lib64/libnvsdm.so*; do
  [ -e "$f" ] && n=yes; done; echo "has libnvsdm $n"
grep -h '^FABRIC_MODE=' "$R/usr/share/nvidia/nvswitch/fabricmanager.cfg" 2>/dev/null
if tool journalctl >/dev/null; then
  ask journalctl -u "$u" -b -n 40 --no-pager -o short 2>/dev/null |
    grep -i -e error -e fail -e "don't match" -e NVL5 -e 'not ' | tail -n 8 | sed 's/^/said /'
fi
echo end
"""


def parse(section: Section) -> Reading[FabricManager]:
    """Return fabric manager; absent when there is neither its unit nor its program."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    text = section.text
    if not re.search(r"(?m)^end$", text):
        return Unknown("the answer stopped early", section.first)
    unit = systemd.read_show("\n".join(re.findall(r"(?m)^unit (.*)$", text)))
    version = read_version("\n".join(re.findall(r"(?m)^version (.*)$", text)))
    no_program = "absent nv-fabricmanager" in text.splitlines()
    if no_program and unit.is_missing is not False and not unit.active:
        return Absent("neither nv-fabricmanager nor its unit is on the host")
    manager = FabricManager(
        unit.active,
        unit.enabled,
        unit.restarts,
        unit.result,
        Absent("nv-fabricmanager: not found") if no_program else version,
        nvlsm=_has(text, "nvlsm"),
        ibstat=_has(text, "ibstat"),
        libnvsdm=_has(text, "libnvsdm"),
        mode=_mode(text),
        said=tuple(re.findall(r"(?m)^said (.*)$", text)),
    )
    return Known(manager, f"nvidia-fabricmanager is {unit.active or 'of unknown state'}")


def read_version(text: str) -> Reading[str]:
    """Return what `nv-fabricmanager --version` tells."""
    found = re.search(r"[Vv]ersion is\s*:\s*(\d+(?:\.\d+)+)", text)
    if found is None:
        return Unknown("nv-fabricmanager tells no version", text.strip().split("\n")[0])
    return Known(found[1], found[0])


def _has(text: str, name: str) -> bool | None:
    found = re.search(rf"(?m)^has {name} (yes|no)$", text)
    return found[1] == "yes" if found else None


def _mode(text: str) -> str:
    found = re.search(r"(?m)^FABRIC_MODE=(\S+)", text)
    return found[1] if found else ""


PROBE = Probe("fabric", FabricManager, SCRIPT, parse, tool="systemctl")
