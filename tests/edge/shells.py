"""A PATH of our own for a local remote: which sh, which tools, and which of them fail when."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.needed import require_shell

SHELLS = ("dash", "bash", "busybox")


def path_with_shell(folder: Path, shell: str) -> str:
    """Return a PATH whose sh is the given one; for busybox, all its tools come with it."""
    require_shell(shell)
    folder.mkdir(parents=True, exist_ok=True)
    if shell == "busybox":
        subprocess.run(["busybox", "--install", "-s", str(folder)], check=True)
    else:
        (folder / "sh").symlink_to(shutil.which(shell) or f"/bin/{shell}")
    return f"{folder}:{os.environ['PATH']}"


def path_with_killer(folder: Path, tool: str, call: int) -> str:
    """Return a PATH where the given call of a tool kills its whole process group instead."""
    folder.mkdir(parents=True, exist_ok=True)
    real = shutil.which(tool)
    counter = folder / f"{tool}.calls"
    counter.write_text("0")
    script = folder / tool
    script.write_text(
        f'#!/bin/sh\nread -r n <"{counter}"\necho $((n + 1)) >"{counter}"\n'
        f'[ "$n" != {call} ] || kill -KILL 0\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
