"""The documented automation, run as it stands in the documentation: check, compare, rebuild."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from .bench import LIGHT, identity
from .conftest import BASE
from .dockerd import Dockerd
from .folders import ROOT
from .k3 import make_k3

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.xdist_group("image")]

TAG = "dynamo-sglang-k3:automation"
GATE_THAT_FAILS = [*LIGHT["gate"], {"check": "prints", "command": ["cat", "/gone"], "pattern": "x"}]


def steps() -> list[str]:
    """Return the workflow's own commands; those that fetch and install the tool are left out."""
    text = (ROOT / "docs/images.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (workflow,) = (block for block in blocks if ".github/workflows" in block)
    job = yaml.safe_load(workflow)["jobs"]["image"]
    return [step["run"] for step in job["steps"] if "bringup image." in step.get("run", "")]


@dataclass
class Runner:
    """A machine that runs the workflow's steps one after the other, until one fails."""

    folder: Path
    environment: dict[str, str]

    def change(self, mark: str, **words: Any) -> None:
        """Commit a change of the image: another patch, other words of image.yml."""
        base = {"reference": BASE}
        make_k3(self.folder, mark=mark, tag="automation", base=base, **{**LIGHT, **words})

    def run(self) -> tuple[int, str]:
        """Return the exit code of the last step that ran, and all that was printed."""
        printed = ""
        for step in steps():
            done = subprocess.run(
                ["bash", "-e", "-c", step], cwd=self.folder, env=self.environment,
                capture_output=True, text=True, check=False, timeout=300,
            )  # fmt: skip
            printed += done.stdout
            if done.returncode != 0:
                return done.returncode, printed
        return 0, printed


def documents(printed: str) -> dict[str, dict[str, Any]]:
    """Return the last object of each schema."""
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {one["schema"]: one for one in found}


@pytest.fixture(scope="module")
def runner(
    builder: Dockerd, wheel_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Runner:
    folder = tmp_path_factory.mktemp("runner")
    program = folder / "bin/bringup"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m bringup "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{program.parent}:/usr/sbin:/usr/bin:/sbin:/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BRINGUP_ENGINE": " ".join(builder.words),
        "BRINGUP_STATE": str(folder / "state"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel_folder),
    }
    return Runner(folder, environment)


def test_the_documented_workflow_builds_once_and_rebuilds_what_changed(
    runner: Runner, builder: Dockerd
) -> None:
    runner.change("# one")
    code, printed = runner.run()
    assert code == 0, printed
    first = identity(builder, TAG)
    assert documents(printed)["bringup.image-build/1"]["id"] == first

    code, printed = runner.run()
    assert (code, identity(builder, TAG)) == (0, first)
    assert "same image, nothing to do" in printed

    runner.change("# two")
    code, printed = runner.run()
    said = documents(printed)
    assert code == 0, printed
    changed = [change["name"] for change in said["bringup.image-diff/1"]["changes"]]
    assert changed == ["patches/sglang/srt/mem_cache/radix_cache.py"]
    assert said["bringup.image-build/1"]["id"] == identity(builder, TAG) != first


def test_the_documented_workflow_stops_at_a_pin_that_does_not_exist(
    runner: Runner, builder: Dockerd
) -> None:
    before = identity(builder, TAG)
    runner.change("# three", packages=["ai-dynamo[sglang]==1.3.0"])
    code, printed = runner.run()
    assert code == 4
    levels = {f["id"]: f["level"] for f in documents(printed)["bringup.image-check/1"]["findings"]}
    assert levels["IMG-01-pins"] == "block"
    assert identity(builder, TAG) == before


def test_a_gate_that_fails_is_told_answer_by_answer_and_kept_in_the_log(
    runner: Runner, builder: Dockerd
) -> None:
    before = identity(builder, TAG)
    runner.change("# four", gate=GATE_THAT_FAILS)
    code, printed = runner.run()
    answers = documents(printed)["bringup.image-gate/1"]["answers"]
    assert code == 1
    assert {a["check"]: a["status"] for a in answers} == {
        "patches_in_place": "pass", "packages_kept": "pass", "prints": "fail",
    }  # fmt: skip
    logs = sorted((runner.folder / "state/images/dynamo-sglang-k3/logs").glob("*.log"))
    assert "gate  prints: fail: cat /gone" in logs[-1].read_text()
    assert identity(builder, TAG) == before


def test_history_tells_an_engine_that_is_down_from_an_image_that_is_not_there(
    runner: Runner,
) -> None:
    runner.change("# five")
    away = runner.environment | {"BRINGUP_ENGINE": "docker -H unix:///nowhere.sock"}
    done = subprocess.run(
        ["bringup", "image.history", "dynamo-sglang-k3", "--json"], cwd=runner.folder, env=away,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["current"] is None
    assert "did not answer" in said["why"] or "Cannot connect" in said["why"], said["why"]
