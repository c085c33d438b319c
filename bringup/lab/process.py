"""The process of the fleet's SSH server: start it, find it, end it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from ..core.errors import ToolError
from . import record
from .lock import holder

PATIENCE_S = 180.0
"""How long to wait for the server to start."""


def server_pid(folder: Path) -> int | None:
    """Return the server's process, or None: alive is who holds the lock, not what a file says.

    Raises ToolError where the lock is held and nothing tells by whom.
    """
    lock = folder / "server.lock"
    if not lock.exists():
        return None
    with lock.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found = holder(lock) or int(record.read(folder / "server.json").get("pid", 0))
            if not found:
                raise ToolError(
                    f"cannot tell which process holds {lock}", remedy=f"lsof {lock}"
                ) from None
            return found
    return None


def start_server(folder: Path) -> None:
    """Start the server of a fleet.json; returns once all hosts can be reached. Raises ToolError."""
    words = [sys.executable, "-m", "bringup.lab.server", str(folder)]
    try:
        done = subprocess.run(
            words, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S, env=_environment(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolError(
            f"cannot start the practice fleet's SSH server: it was not up after {PATIENCE_S:.0f} s",
            remedy=f"see {folder / 'server.log'}, and run the same command again",
        ) from None
    if done.returncode:
        raise ToolError(
            "cannot start the practice fleet's SSH server", said=done.stderr[-2000:],
            remedy="./run lab.down --remove && ./run lab.up",
        )  # fmt: skip


def _environment() -> dict[str, str]:
    """The environment of the server: this package importable, nothing of a test run's."""
    package = str(Path(__file__).parents[2])
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{package}:{path}" if path else package}


def stop_server(folder: Path, pid: int) -> None:
    """End the server: TERM, and KILL when it does not let go of its lock."""
    for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 60.0)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if server_pid(folder) is None:
                return
            time.sleep(0.02)
    raise ToolError(f"cannot stop the practice fleet's server, process {pid}")
