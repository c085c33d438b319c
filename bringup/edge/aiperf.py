"""AIPerf as a program of its own: found, run, read. It is never imported.

It brings some 140 packages (1.2 GB) and holds rich, pydantic and others in narrow ranges; as a
program it may live in any environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import UsageError
from ..serve import aiperf
from ..serve.load import Load

PIN = "aiperf>=0.13,<0.14"


def install() -> str:
    """Return how to get it: beside this Python, or where nothing else lives."""
    own = "~/aiperf"
    return (
        f"{sys.executable} -m pip install {PIN!r}\n"
        f"or apart: python3 -m venv {own} && {own}/bin/pip install {PIN!r}\n"
        f"and then: --aiperf {own}/bin/aiperf"
    )


GRACE_S = 120
"""For its own start and end, besides what the streams take."""


def find(said: str) -> str:
    """Return the program: the one named, beside this Python, or on PATH. Raises UsageError."""
    beside = Path(sys.executable).with_name("aiperf")
    known = [said] if said else [str(beside), shutil.which("aiperf") or ""]
    for path in filter(None, known):
        if os.access(Path(path).expanduser(), os.X_OK):
            return str(Path(path).expanduser())
    where = f"at {said}" if said else f"beside {sys.executable} or on PATH"
    raise UsageError(f"cannot run AIPerf: there is none {where}", remedy=install())


def run(program: str, load: Load, *, url: str, model: str, tokenizer: str) -> aiperf.Aiperf:
    """Let AIPerf read streams, and return what it saw; its trouble is told in the answer."""
    with tempfile.TemporaryDirectory(prefix="bringup-aiperf-") as folder:
        words = aiperf.words(
            program, load, url=url, model=model, tokenizer=tokenizer, folder=folder
        )
        command = shlex.join(words)
        try:
            done = subprocess.run(
                words, cwd=folder, env=_environment(), capture_output=True, text=True, check=False,
                errors="replace", timeout=GRACE_S + load.idle_s + load.load_s,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return aiperf.Aiperf(error=f"cannot run it: {error}"[:300], command=command)
        if done.returncode != 0:
            said = _reason((done.stdout + done.stderr).splitlines(), Path(folder))
            return aiperf.Aiperf(error=f"exit code {done.returncode}: {said}", command=command)
        try:
            return aiperf.parse((Path(folder) / aiperf.EXPORT).read_text(), command)
        except (OSError, ValueError) as error:
            return aiperf.Aiperf(error=f"cannot read its export: {error}", command=command)


def _environment() -> dict[str, str]:
    """Its environment: offline mode makes it look for a folder's tokenizer in the hub's cache."""
    kept = {name: value for name, value in os.environ.items() if "OFFLINE" not in name}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "200"}


def _reason(lines: Iterable[str], folder: Path) -> str:
    """Return what its box of errors says, else the last error of its log."""
    plain = [line.strip("│ \t") for line in lines]
    told = [line for line in plain if line.startswith(("Reason:", "Error:", "error:"))]
    log = folder / "logs/aiperf.log"
    if not told and log.exists():
        told = [line for line in log.read_text(errors="replace").splitlines() if "ERROR" in line]
    return (told or [line for line in plain if line] or ["it said nothing"])[-1][:300]
