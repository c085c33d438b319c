"""XIDs: what each error report of the driver means, and what it asks for.

Codes and actions after NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors) and Health
Validation; a code that is not listed here is shown and judged as a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Action(Enum):
    """What to do about an XID, mildest first."""

    NONE = "nothing: it follows from another one"
    APPLICATION = "look at the program that ran; the GPU is sound"
    WATCH = "reset the GPU at the next drain"
    RESET = "drain, then reset the GPU"
    REBOOT = "drain, then power-cycle the host"
    REPLACE = "drain, then have the board replaced"

    @property
    def is_fatal(self) -> bool:
        return self in (Action.RESET, Action.REBOOT, Action.REPLACE)


@dataclass(frozen=True, slots=True)
class Meaning:
    """One code: its name and action."""

    name: str
    action: Action


XIDS: Mapping[int, Meaning] = {
    8: Meaning("GPU stopped processing", Action.APPLICATION),
    11: Meaning("invalid or corrupted push buffer", Action.APPLICATION),
    13: Meaning("graphics engine exception", Action.APPLICATION),
    31: Meaning("memory page fault", Action.APPLICATION),
    32: Meaning("corrupted push buffer", Action.APPLICATION),
    43: Meaning("GPU stopped processing", Action.APPLICATION),
    44: Meaning("graphics fault during context switch", Action.APPLICATION),
    45: Meaning("preemptive cleanup", Action.NONE),
    46: Meaning("GPU stopped processing", Action.RESET),
    48: Meaning("uncorrectable (double bit) memory error", Action.RESET),
    61: Meaning("internal microcontroller breakpoint", Action.RESET),
    62: Meaning("internal microcontroller halt", Action.RESET),
    63: Meaning("row remap recorded", Action.WATCH),
    64: Meaning("row remap failed", Action.REPLACE),
    66: Meaning("illegal access by the driver", Action.RESET),
    68: Meaning("video processor exception", Action.APPLICATION),
    69: Meaning("graphics engine class error", Action.APPLICATION),
    74: Meaning("NVLink error", Action.RESET),
    79: Meaning("GPU has fallen off the bus", Action.REBOOT),
    92: Meaning("high rate of corrected memory errors", Action.WATCH),
    94: Meaning("contained memory error", Action.WATCH),
    95: Meaning("uncontained memory error", Action.RESET),
    96: Meaning("decoder exception", Action.APPLICATION),
    109: Meaning("context switch timeout", Action.RESET),
    110: Meaning("security fault", Action.REBOOT),
    119: Meaning("GPU system processor does not answer", Action.RESET),
    120: Meaning("GPU system processor error", Action.RESET),
    121: Meaning("C2C link error", Action.WATCH),
    122: Meaning("SPI failure while reading the inforom", Action.WATCH),
    123: Meaning("power management unit request failed", Action.RESET),
    124: Meaning("video decoder exception", Action.APPLICATION),
    126: Meaning("video encoder exception", Action.APPLICATION),
    136: Meaning("link training failed", Action.RESET),
    137: Meaning("NVLink privilege error of a remote access", Action.APPLICATION),
    140: Meaning("unrecovered memory error", Action.RESET),
    143: Meaning("GPU initialisation failed", Action.RESET),
    144: Meaning("NVLink error (SAW)", Action.RESET),
    145: Meaning("NVLink error (RLW)", Action.RESET),
    146: Meaning("NVLink error (TLW)", Action.RESET),
    147: Meaning("NVLink error (TREX)", Action.RESET),
    148: Meaning("NVLink error (NVLPW)", Action.RESET),
    149: Meaning("NVLink error (NETIR)", Action.RESET),
    150: Meaning("NVLink error (MSE)", Action.RESET),
    151: Meaning("key rotation error", Action.RESET),
    154: Meaning("recovery action changed", Action.RESET),
    155: Meaning("NVLink software-defined error", Action.RESET),
    156: Meaning("resource retirement event", Action.WATCH),
    157: Meaning("resource retirement failed", Action.REPLACE),
    158: Meaning("GPU fatal timeout", Action.RESET),
    160: Meaning("memory channel retired", Action.WATCH),
    161: Meaning("memory channel retirement failed", Action.REPLACE),
    171: Meaning("uncorrectable DRAM error", Action.RESET),
    172: Meaning("uncorrectable SRAM error", Action.RESET),
}


NVLINK5 = range(144, 151)
"""XIDs of NVLink 5, whose line says whether the error was fatal (leptonai/gpud#1174)."""


def action_of(code: int, line: str = "") -> Action:
    """Return what an XID asks for. 154 says it itself in its line, NVLink 5 how grave it is."""
    if code == 154:
        return _changed(line)
    if code in NVLINK5 and re.search(r"(?i)\bnon-?fatal\b", line):
        return Action.WATCH
    meaning = XIDS.get(code)
    return meaning.action if meaning else Action.WATCH


def _changed(line: str) -> Action:
    """Read ``changed from 0x0 (None) to 0x2 (Node Reboot Required)``: the last word counts."""
    wanted = line.rpartition(" to ")[2]
    if "(None)" in wanted or wanted.startswith("0x0"):
        return Action.NONE
    return Action.REBOOT if "Reboot" in wanted else Action.RESET


def meaning_of(code: int) -> str:
    """Return the name of an XID, with its number."""
    return f"XID {code} ({XIDS[code].name})" if code in XIDS else f"XID {code}"
