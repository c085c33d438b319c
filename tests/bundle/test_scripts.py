"""The bundle's sh texts pass shellcheck, as POSIX sh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bringup.bundle.frontend_process import log_ask, process_ask
from bringup.bundle.manifest import BundleFile, Identity, make_manifest
from bringup.bundle.scan import fetch_asks, listing_ask
from bringup.bundle.selection import Candidate
from bringup.bundle.self_hosting import reach_ask
from bringup.bundle.step import bundle_step
from bringup.core.steps import Run

MANIFEST = make_manifest([BundleFile("odd 'name'\n", 1, "0" * 64, "")], Identity())
STEP = bundle_step(MANIFEST, "bundle.tgz", "0" * 64, "/raid/models/Kimi-K3")
GUARD = STEP.actions[0]
assert isinstance(GUARD, Run)

SCRIPTS = {
    "list": listing_ask("/raid/models/Kimi-K3").script,
    "fetch": fetch_asks("/raid/models/Kimi-K3", [Candidate("a b", 10)])[0].script,
    "observe": STEP.observe,
    "guard": str(GUARD.words[2]),
    "process": process_ask().script,
    "log": log_ask(("docker", "logs", "frontend")).script,
    "reach": reach_ask("b300-04", 8081).script,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_passes_shellcheck(name: str) -> None:
    program = str(Path(sys.executable).parent / "shellcheck")
    # SC2154: R is set by whoever composes the script.
    words = [program, "--shell", "sh", "--severity", "warning", "--exclude", "SC2154", "-"]
    done = subprocess.run(words, input=SCRIPTS[name], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
