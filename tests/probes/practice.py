"""Practice hosts' folders for tests of the whole script: real tools' layouts, no server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bringup.core.facts import Facts, Probe, read
from bringup.core.script import Answer, compose, split
from bringup.lab.describe import describe
from bringup.lab.hardware import Hardware
from bringup.lab.host import tree
from bringup.lab.tree import settle
from bringup.probes import ALL
from tests.needed import require_shell

NONCE = "practice"


@dataclass(frozen=True)
class Run:
    """What one run of the script gave, and what it cost in seconds."""

    answer: Answer
    facts: Facts
    wall_s: float
    stderr: str


def host(folder: Path, name: str, **faults: Any) -> Path:  # Any: fields of Faults
    """Make the folder of a practice host, sick as told, and return it."""
    (hardware,) = describe([name])
    sick: Hardware = replace(hardware, faults=replace(hardware.faults, **faults))
    root = folder / name
    settle(root, tree(sick))
    return root


def run(
    root: Path, *, shell: str = "sh", probes: Iterable[Probe[Any]] = ALL, timeout: float = 600
) -> Run:
    """Run the script of all probes on a practice host's folder."""
    require_shell(shell.split(maxsplit=1)[0])
    asked = tuple(probes)
    script = compose((probe.ask for probe in asked), nonce=NONCE, root=str(root))
    started = time.monotonic()
    done = subprocess.run(
        [*shell.split(), "-c", script],
        capture_output=True,
        check=False,
        timeout=timeout,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
    )
    wall = time.monotonic() - started
    answer = split(done.stdout.decode(errors="replace"), nonce=NONCE)
    return Run(answer, read(asked, answer), wall, done.stderr.decode(errors="replace"))
