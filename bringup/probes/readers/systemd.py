"""What systemctl and journalctl print about one unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..text import limit

STATES = ("active", "inactive", "failed", "activating", "deactivating", "reloading", "unknown")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit. "" and None: not told. `is_missing`: systemd knows no such unit."""

    active: str = ""
    enabled: str = ""
    restarts: int | None = None
    result: str = ""
    is_missing: bool | None = None
    said: tuple[str, ...] = ()
    limits: Mapping[str, int | None] = field(default_factory=dict)


def read_show(text: str) -> Unit:
    """Return what `systemctl show` tells as Key=value lines."""
    told = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
    restarts = told.get("NRestarts", "")
    load = told.get("LoadState", "")
    state = told.get("ActiveState", "")
    missing = load == "not-found"
    return Unit(
        state if state in STATES and not missing else "",
        told.get("UnitFileState", ""),
        int(restarts) if restarts.isdecimal() else None,
        told.get("Result", ""),
        missing if load else None,
        limits={ours: _limit(told[its]) for its, ours in _LIMITS.items() if its in told},
    )


_LIMITS = {"LimitNOFILE": "files", "LimitMEMLOCK": "memlock", "LimitNPROC": "processes"}


def _limit(word: str) -> int | None:
    return limit("unlimited" if word == "infinity" else word)


def read_status(text: str) -> Unit:
    """Return what `systemctl status` tells: state, whether it is enabled, its last log lines."""
    if re.search(r"(?m)^Unit \S+ could not be found", text):
        return Unit(is_missing=True)
    active = re.search(r"(?m)^\s*Active:\s+(\w+)(?: \(Result: ([\w-]+)\))?", text)
    loaded = re.search(r"(?m)^\s*Loaded:\s+(\S+)(?: \([^;)]*; *([\w-]+))?", text)
    restarts = re.search(r"restart counter is at (\d+)", text)
    state = active[1] if active and active[1] in STATES else ""
    return Unit(
        state,
        (loaded[2] or "") if loaded else "",
        int(restarts[1]) if restarts else None,
        (active[2] or "") if active else "",
        loaded[1] == "not-found" if loaded else None,
        journal(text),
    )


def read_is_active(text: str) -> Unit:
    """Return what `systemctl is-active` prints: one word."""
    word = text.strip().split("\n")[-1].strip()
    return Unit(word if word in STATES and word != "unknown" else "")


def read_journal(text: str) -> Unit:
    """Return what a unit's journal tells: its lines, and how systemd's last word leaves it."""
    said = journal(text)
    words = [line for line in said if line.startswith("systemd: ")]
    ends = ((r"Failed (?:with result|to start)", "failed"), (r"Started ", "active"),
            (r"Stopped |Deactivated", "inactive"))  # fmt: skip
    last = words[-1] if words else ""
    state = next((state for pattern, state in ends if re.search(pattern, last)), "")
    return Unit(state, said=said)


def journal(text: str) -> tuple[str, ...]:
    """Return the log lines in a text, as "program: message"."""
    pattern = r"(?m)^(?:\w{3} +\d+ [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ (\S+?)(?:\[\d+\])?: (.*)$"
    return tuple(f"{program}: {message}" for program, message in re.findall(pattern, text))
