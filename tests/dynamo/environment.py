"""The Python that has the real Dynamo, made once and kept between runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "1.3.0.post1"

OWN = "BRINGUP_TEST_DYNAMO_VENV"
"""Names a virtual environment that has ai-dynamo already; it is used as it is."""


def cache_folder() -> Path:
    """Return where test tools are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bringup-tests"


def dynamo_python() -> Path:
    """Return a Python that imports `dynamo`, installing ai-dynamo on first use (about a minute).

    Several test processes may ask at once; one of them installs.
    """
    given = os.environ.get(OWN)
    if given:
        return Path(given) / "bin" / "python"
    folder = cache_folder() / f"dynamo-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _install(folder)
    return folder / "bin" / "python"


def _install(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    for words in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--no-input", f"ai-dynamo=={VERSION}"],
        [str(python), "-c", "import dynamo.frontend, dynamo.llm"],
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, f"cannot install ai-dynamo {VERSION}:\n{done.stderr[-3000:]}"
    (folder / "complete").touch()
