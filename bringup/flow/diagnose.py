"""Name what a log tells, with what the hosts' checks say beside it."""

from __future__ import annotations

import sys
from pathlib import Path

from ..core.errors import UsageError
from ..edge.catalogue import failures
from ..readiness.diagnosis import Diagnosis, came_up
from ..readiness.failures import Case, diagnose, unexplained
from ..readiness.log_lines import lines_of, shown


def diagnose_text(source: str, log: str, case: Case | None = None) -> Diagnosis:
    """Return what a log tells."""
    lines = lines_of(log)
    found = diagnose(failures(), lines, case)
    if not any(match.is_certain for match in found) and (up := came_up(lines)):
        return Diagnosis(source, found, stands=f"came up: {shown(up)}", is_well=True)
    return Diagnosis(source, found, unexplained(found, lines))


def read_text(path: str) -> str:
    """Return a log file whole, or standard input for "-". Raises UsageError."""
    if path == "-":
        return sys.stdin.buffer.read().decode(errors="replace")
    try:
        return Path(path).read_bytes().decode(errors="replace")
    except OSError as error:
        raise UsageError(
            f"cannot read the log {path}: {error.strerror}",
            remedy="name a file here, - for a pipe, or --deployment for its workers' logs",
        ) from error
