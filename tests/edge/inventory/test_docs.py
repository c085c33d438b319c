"""The examples in docs/inventory.md load."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bringup.edge.inventory import load
from tests.conftest import ROOT

BLOCKS = re.findall(
    r"```yaml\n# (inventory/\S+)\n(.*?)```", (ROOT / "docs/inventory.md").read_text(), re.DOTALL
)
FLEET = next(text for name, text in BLOCKS if "b300-[01-08]" in text)


@pytest.mark.parametrize(("name", "text"), BLOCKS)
def test_an_example_loads(tmp_path: Path, name: str, text: str) -> None:
    shutil.copytree(ROOT / "inventory" / "kinds", tmp_path / "inventory" / "kinds")
    (tmp_path / "inventory" / "hosts.yml").write_text(FLEET)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert load(tmp_path / "inventory", ROOT / "images").hosts


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 3
