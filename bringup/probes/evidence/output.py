"""What a command gave."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """What a command gave. `code` 127 means that the program is missing."""

    code: int
    stdout: str = ""
    stderr: str = ""

    @property
    def text(self) -> str:
        return f"{self.stdout}\n{self.stderr}" if self.stderr else self.stdout

    @property
    def line(self) -> str:
        """The first line that is not blank, as evidence."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @property
    def is_missing(self) -> bool:
        """Tell whether the program itself is not there."""
        return self.code == 127 or bool(re.search(r"command not found$", self.text, re.MULTILINE))

    @property
    def is_refused(self) -> bool:
        return bool(re.search(r"(?i)permission denied|operation not permitted", self.text))

    @property
    def is_late(self) -> bool:
        """Tell whether it was stopped by a time limit."""
        return self.code in (124, 137)

    @property
    def has_no_file(self) -> bool:
        return "No such file or directory" in self.text
