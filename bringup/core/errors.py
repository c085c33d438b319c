"""Everything that can go wrong, as people and exit codes see it.

ToolError
├─ UsageError, InventoryError, TemplateError        exit 2
├─ Unreachable                                      exit 3
├─ Blocked, LockHeld, StalePlan                     exit 4: nothing was changed
└─ CommandFailed, VerifyFailed                      exit 1
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from json import JSONDecodeError


class Exit(IntEnum):
    """Stable exit codes of every verb."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    BLOCKED = 4
    WOULD_CHANGE = 5
    INTERRUPTED = 130


GRAVITY = (
    Exit.INTERRUPTED,
    Exit.FAILED,
    Exit.UNREACHABLE,
    Exit.BLOCKED,
    Exit.USAGE,
    Exit.WOULD_CHANGE,
    Exit.DONE,
)


def gravest(codes: list[Exit]) -> Exit:
    """Return the exit code of many hosts: the gravest one."""
    return min(codes, key=GRAVITY.index, default=Exit.DONE)


class ToolError(Exception):
    """An error for people: starts with "cannot", names host and step, ends with what to do."""

    code = Exit.FAILED

    def __init__(
        self,
        message: str,
        *,
        host: str = "",
        step: str = "",
        said: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.host = host
        self.step = step
        self.said = said
        self.remedy = remedy

    def at(self, *, host: str = "", step: str = "") -> ToolError:
        """Fill in the host and step where they were not known below; return self to re-raise."""
        self.host = self.host or host
        self.step = self.step or step
        return self


class UsageError(ToolError):
    """The command line asks for something that does not exist or does not fit."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One fault in a file that a person wrote."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class InventoryError(ToolError):
    """Files that people wrote do not make sense; carries every problem found, not the first."""

    code = Exit.USAGE

    def __init__(
        self, problems: tuple[Problem, ...], *, remedy: str = "", what: str = "the inventory"
    ) -> None:
        text = "\n".join(str(problem) for problem in problems)
        super().__init__(f"cannot read {what}:\n{text}", remedy=remedy)
        self.problems = problems


class TemplateError(ToolError):
    """A template names a value that nobody gave, or does not parse."""

    code = Exit.USAGE


class Unreachable(ToolError):
    """No trusted connection: refused, timed out, lost, or the host key is not the known one."""

    code = Exit.UNREACHABLE


class Blocked(ToolError):
    """Findings forbid it, or a fact that is needed is unknown. Nothing was changed."""

    code = Exit.BLOCKED


class LockHeld(Blocked):
    """Somebody else is changing this host."""


class StalePlan(Blocked):
    """Facts or observations differ from those a saved plan was made from."""


class CommandFailed(ToolError):
    """A command on the host ended with an exit code that is not an answer."""

    def __init__(
        self,
        message: str,
        *,
        ran: str,
        exit_code: int,
        said: str = "",
        host: str = "",
        step: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(message, host=host, step=step, said=said, remedy=remedy)
        self.ran = ran
        self.exit_code = exit_code


class VerifyFailed(ToolError):
    """A step was applied, and the same observation still does not find what was wanted."""


class Interrupted(ToolError):
    """The operator pressed Ctrl-C."""

    code = Exit.INTERRUPTED


def unread(error: OSError | ValueError) -> str:
    """Return in words why a file could not be read: missing, no text, no JSON."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is no UTF-8 text"
    if isinstance(error, JSONDecodeError):
        return f"it is no JSON at line {error.lineno}"
    return str(error)


_OWN = re.compile(r"SHA256:\S+|\d+(?:[.:]\d+)*")
"""What differs between hosts with one trouble: keys, addresses, ports, times, counts."""


def alike(errors: Iterable[ToolError]) -> tuple[tuple[ToolError, ...], ...]:
    """Return errors in groups that differ only in the host's name, in numbers and in keys."""
    groups: dict[tuple[str, ...], list[ToolError]] = {}
    for error in errors:
        texts = (error.step, error.message, error.remedy)
        shape = (_OWN.sub("#", text.replace(error.host or "\0", "@")) for text in texts)
        groups.setdefault((type(error).__name__, *shape), []).append(error)
    return tuple(map(tuple, groups.values()))
