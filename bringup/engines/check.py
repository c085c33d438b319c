"""stub"""

from __future__ import annotations

from ..core.rules import Finding
from .engine import CommandLine, Versions


def findings(line: CommandLine, held: Versions) -> tuple[Finding, ...]:
    """Return nothing yet."""
    del line, held
    return ()
