"""The operator's own kubectl: their context, their rights, their say."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from ..core.errors import CommandFailed, UsageError
from ..core.words import shown


def run(words: Iterable[str], *, seconds: float = 660.0) -> str:
    """Run one kubectl command and return what it said.

    Raises CommandFailed, and UsageError where there is no kubectl.
    """
    command = tuple(words)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False
        )  # fmt: skip
    except FileNotFoundError as error:
        raise UsageError(
            "cannot find kubectl on this machine",
            remedy=f"run it where kubectl is: {shown(command)}",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(
            f"cannot wait longer for kubectl: {seconds:g} s", ran=shown(command), exit_code=124
        ) from error
    if done.returncode:
        raise CommandFailed(
            f"cannot apply it: kubectl exit {done.returncode}",
            ran=shown(command),
            exit_code=done.returncode,
            said=(done.stdout + done.stderr).strip(),
        )
    return done.stdout
