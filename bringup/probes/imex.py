"""IMEX: the service that lends memory between trays of an NVLink rack (GB200, GB300)."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .readers import systemd


@dataclass(frozen=True, slots=True)
class Imex:
    """`state` is systemd's ActiveState of nvidia-imex, "" where it was not told.

    `channels`: whether there is a channel's device file in /dev/nvidia-caps-imex-channels.
    """

    state: str
    channels: bool | None = None


SCRIPT = r"""
tool systemctl >/dev/null || { echo 'systemctl: not found'; exit 4; }
ask systemctl show nvidia-imex -p LoadState,ActiveState 2>&1
"""


def parse(section: Section) -> Reading[Imex]:
    """Return the state of the service; absent where systemd knows no such unit."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    return of_unit(systemd.read_show(section.text), section.first)


def of_unit(unit: systemd.Unit, line: str) -> Reading[Imex]:
    """Return what systemd tells of the unit, by whichever command it was asked."""
    if unit.is_missing:
        return Absent("systemd knows no nvidia-imex.service")
    if not unit.active:
        return Unknown("the state of nvidia-imex was not told", line)
    return Known(Imex(unit.active), f"nvidia-imex is {unit.active}")


PROBE = Probe("imex", Imex, SCRIPT, parse, tool="systemctl")
