"""Ask this machine, or a folder as root, with real shells."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Any

from bringup.core.facts import Facts, Probe, read
from bringup.core.script import compose, split
from tests.needed import require_shell

SHELLS = [("dash",), ("bash",), ("busybox", "sh")]


def ask(
    *probes: Probe[Any],
    root: str = "/",
    shell: tuple[str, ...] = ("sh",),
    env: Mapping[str, str] | None = None,
) -> Facts:
    """Run the script of some probes and return the facts in its answer."""
    require_shell(shell[0])
    script = compose([probe.ask for probe in probes], nonce="n1", root=root)
    done = subprocess.run(
        [*shell, "-c", script], capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, **(env or {})}, errors="replace",
    )  # fmt: skip
    return read(probes, split(done.stdout, nonce="n1"))
