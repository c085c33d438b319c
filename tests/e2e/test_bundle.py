"""The tokenizer bundle in the main job: made from a host, placed by `provision`, never by half."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, Lab

pytestmark = pytest.mark.xdist_group("lab")

KEY = """
bundle:
  file: bundles/kimi-k3.tgz
  to: ["b300-[04,07]:/srv/frontend/Kimi-K3", "b300-07:/raid/models/Kimi-K3"]
"""


@pytest.fixture
def placed(lab: Lab) -> Iterator[Lab]:
    """Yield a fleet whose K3 deployment says where its bundle goes; no bundle is made yet."""
    file = lab.inventory / "deployments" / "kimi-k3.yml"
    before = file.read_text()
    file.write_text(before + KEY)
    yield lab
    file.write_text(before)
    bundle(lab).unlink(missing_ok=True)


def bundle(lab: Lab) -> Path:
    return lab.inventory / "bundles" / "kimi-k3.tgz"


def make(lab: Lab) -> None:
    bundle(lab).parent.mkdir(exist_ok=True)
    words = ["bundle.make", "b300-04:/raid/models/Kimi-K3", "--out", str(bundle(lab))]
    subprocess.run(
        [sys.executable, "-m", "bringup", *words, "--inventory", str(lab.inventory)],
        cwd=ROOT, check=True, timeout=600, env={**os.environ, "HOME": str(lab.folder)},
    )  # fmt: skip


def test_a_bundle_that_is_not_made_yet_is_told_with_the_command(placed: Lab) -> None:
    done = placed.run("provision", "--host", "b300-04", "--check")
    assert done.returncode == 2
    assert "do      bringup bundle.make b300-04:/raid/models/Kimi-K3 --out" in done.stderr


def test_provision_places_the_bundle_and_finds_nothing_to_change_after(placed: Lab) -> None:
    make(placed)
    assert placed.run("provision", "--host", "b300-[04,07]").returncode == 0
    for host in ("b300-04", "b300-07"):
        folder = placed.root(host) / "srv/frontend/Kimi-K3"
        worker = placed.root(host) / "raid/models/Kimi-K3"
        for name in ("config.json", "tiktoken.model", "tokenization_kimi.py"):
            assert (folder / name).read_bytes() == (worker / name).read_bytes()
    again = placed.run("provision", "--host", "b300-[04,07]", "--check")
    assert again.returncode == 0, again.stdout


def test_files_that_no_bundle_put_there_block_before_any_change(placed: Lab) -> None:
    make(placed)
    folder = placed.root("b300-04") / "srv/frontend/Kimi-K3"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine\n")
    done = placed.run("provision", "--host", "b300-04")
    assert done.returncode == 4
    assert "bundle-in-the-way" in done.stdout
    assert sorted(folder.iterdir()) == [folder / "notes.txt"]
    assert not any(name.startswith("b300-04/") for name in placed.scripts())


def test_the_doctor_asks_services_through_a_host_where_the_controller_has_no_way(lab: Lab) -> None:
    done = lab.bare("bundle.doctor", "--inventory", str(lab.inventory), "--deployment", "kimi-k3")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no worker has announced anything" in done.stdout
