"""The gate's vocabulary, and what its answers come to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

CHECKS: Mapping[str, tuple[str, ...]] = {
    "engine_unchanged": (),
    "engine_imported_from_its_path": (),
    "patches_in_place": (),
    "packages_kept": (),
    "requirements_met": ("allow",),
    "imports": ("modules",),
    "imports_resolve": ("start", "packages", "allow"),
    "help_lists": ("command", "flags"),
    "prints": ("command", "pattern"),
    "versions": ("packages",),
}
"""Every check that `edge.inside.gate` knows, with the values it needs."""


_TEXTS = ("start", "pattern")


def value_fault(key: str, value: object) -> str:
    """Return what is wrong with a value of a check, "" where nothing is."""
    if key in _TEXTS:
        return _text_fault(key, value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "should be a list of words, each of them text"
    return "names nothing to run" if key == "command" and not value else ""


def _text_fault(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        return "should be text"
    try:
        re.compile(value if key == "pattern" else "")
    except re.error as error:
        return f"{value!r} is no regular expression: {error}"
    return ""


class GateStatus(Enum):
    """What one check of the gate came to; NOT_RUN is no pass."""

    PASS = "pass"  # noqa: S105 - a status, no password
    FAIL = "fail"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What the built image said to one check."""

    check: str
    status: GateStatus
    says: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GateReport:
    """All answers of one run of the gate."""

    answers: tuple[GateAnswer, ...]

    @property
    def failed(self) -> tuple[GateAnswer, ...]:
        return tuple(a for a in self.answers if a.status is GateStatus.FAIL)

    @property
    def not_run(self) -> tuple[GateAnswer, ...]:
        return tuple(a for a in self.answers if a.status is GateStatus.NOT_RUN)

    @property
    def versions(self) -> dict[str, str]:
        """What was found inside: package or tool to version."""
        return {name: v for answer in self.answers for name, v in answer.versions.items()}
