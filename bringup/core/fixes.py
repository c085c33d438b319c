"""Fixes: what a remedy comes to on one host, and what stays for a person to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from .rules import Finding
from .steps import Step


class Risk(IntEnum):
    """The most that a fix may do to what runs on the host; bringup itself never goes past SERVICE.

    What needs a reboot or a drained host is only ever printed.
    """

    SAFE = 0
    SERVICE = 1  # restarts a service
    REBOOT = 2
    DRAIN = 3

    @property
    def words(self) -> str:
        return ("safe", "restarts a service", "needs reboot", "needs drain")[self]


LEVELS = {"safe": Risk.SAFE, "service": Risk.SERVICE, "reboot": Risk.REBOOT}
"""Words of ``--fix-level``."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which fixes are wanted: those of some findings ("()" means all), up to a risk."""

    only: tuple[str, ...] = ()
    level: Risk = Risk.SAFE


@dataclass(frozen=True, slots=True)
class Fix:
    """One finding with the steps that clear it, or the reason why a person has to.

    `withheld` says why the steps are not taken, "" where they are. `commands` are what a person
    types then, in order. `after` are findings whose fixes may clear this one too.
    """

    finding: Finding
    title: str
    risk: Risk
    cost: str = ""
    steps: tuple[Step, ...] = ()
    withheld: str = ""
    commands: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def is_taken(self) -> bool:
        return bool(self.steps) and not self.withheld
