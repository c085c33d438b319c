"""One simple command that somebody ran, and what it gave."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .output import Output
from .verdicts import Verdict, settled

__all__ = ["HOST", "Asked", "Output"]

HOST = "host"


_BY_CODE = ("command", "which", "type", "hash", "test", "[", "systemctl", "sudo")
"""Programs whose exit code is their answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One simple command. `pattern` is the regular expression of the greps behind it.

    `place` is "host", "container NAME", "image NAME", or the word before a colon ("worker").
    `is_cut`: only some of its lines came through. `is_counted`: only their number came.
    """

    program: str
    words: tuple[str, ...] = ()
    place: str = HOST
    pattern: str = ""
    is_cut: bool = False
    is_counted: bool = False
    is_reshaped: bool = False
    called: str = ""  # the program as it was written, with its path
    keeps: int | None = None  # most lines that head or tail let through; 0: nobody can tell
    is_thinned: bool = False  # some lines were taken out, as by grep -v
    errors: str = "shown"  # where error messages went: "shown", "merged" with the rest, "gone"
    is_excused: bool = False  # `||` or `;` behind it: the exit code may be another command's
    is_quiet: bool = False  # only the exit code tells: grep -q, >/dev/null
    verdict: Verdict | None = None  # what is printed of how it ended

    def has(self, *flags: str) -> bool:
        """Tell whether one of the words is there, as it stands or before ``=``."""
        return any(word in flags or word.partition("=")[0] in flags for word in self.words)

    def after(self, *flags: str) -> str:
        """Return the value of an option, given as the next word or behind ``=``; "" without."""
        for place, word in enumerate(self.words):
            name, equals, value = word.partition("=")
            if name in flags and equals:
                return value
            if word in flags and place + 1 < len(self.words):
                return self.words[place + 1]
        return ""

    def hides(self, output: Output) -> bool:
        """Tell whether a failure would look the same as this empty answer."""
        if self.is_quiet and self.program not in _BY_CODE:
            return output.code == 0
        if self.program == "command":
            return False  # the shell's own look-up fails in one way only
        is_filtered = self.is_cut or self.is_reshaped
        is_muted = self.errors == "gone" or (self.errors == "merged" and is_filtered)
        empty = output.text.strip() == ("0" if self.is_counted else "")
        return is_muted and empty and (is_filtered or (self.is_excused and output.code == 0))

    def is_partial(self, output: Output) -> bool:
        """Tell whether lines may be missing that no pattern of a grep accounts for."""
        full = self.keeps is not None and len(output.stdout.splitlines()) >= self.keeps
        return full or self.is_thinned or self.is_reshaped

    @property
    def operands(self) -> tuple[str, ...]:
        """The words that are no options."""
        return tuple(word for word in self.words if not word.startswith("-"))

    @property
    def path(self) -> str:
        """The last operand, as a path."""
        return self.operands[-1] if self.operands else ""

    def matches(self, text: str) -> bool:
        """Tell whether a line would have passed the greps behind the command."""
        try:
            return not self.pattern or re.search(self.pattern, text) is not None
        except re.error:
            return False


def ended(asked: Asked, output: Output) -> tuple[Asked, Output]:
    """Return a command and its output with the exit code that was its own, where words tell it."""
    told = settled(asked.verdict, output) if asked.verdict else None
    return (replace(asked, is_excused=False), told) if told else (asked, output)
