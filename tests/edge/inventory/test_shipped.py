"""The shipped inventory is manual and schema in one: it loads, and it shows every key."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from pydantic import BaseModel

from bringup.core.host import Mode
from bringup.edge import yaml_marks
from bringup.edge.inventory import load
from bringup.edge.schema import DeploymentEntry, HostsFile, KindEntry, Settings, keys_of
from bringup.engines import ENGINES
from bringup.engines.knobs import KNOBS
from tests.conftest import ROOT

SHIPPED = ROOT / "inventory"


def uncommented(text: str) -> str:
    """Return an example file with all its examples in use: a # that touches a key goes."""
    return re.sub(r"(?m)^( *)#(?=[^ \n])", r"\1", text)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return a copy of the shipped inventory with every example line in use."""
    folder = shutil.copytree(SHIPPED, tmp_path / "inventory")
    for path in folder.rglob("*.yml"):
        path.write_text(uncommented(path.read_text()).replace("image: dynamo-sglang-k3\n", ""))
    return folder


def shown_keys(folder: Path, files: str, model: type[BaseModel]) -> set[tuple[str, ...]]:
    """Return the keys of a model that stand in the files, names of one's own as ``*``."""
    marks = [yaml_marks.read(path.read_bytes(), path.name).marks for path in folder.glob(files)]
    paths = [path for each in marks for path in each]
    return {keys for keys in keys_of(model) if any(_is_shown(keys, path) for path in paths)}


def _is_shown(keys: tuple[str, ...], path: Iterable[str | int]) -> bool:
    steps = tuple(path)
    return len(steps) == len(keys) and all(
        key in ("*", step) for key, step in zip(keys, steps, strict=True)
    )


@pytest.mark.parametrize(
    ("files", "model"),
    [
        ("hosts.yml", HostsFile),
        ("deployments/kimi-k3.yml", DeploymentEntry),
        ("kinds/*.yml", KindEntry),
    ],
)
def test_every_key_stands_in_the_example(whole: Path, files: str, model: type[BaseModel]) -> None:
    wanted = {keys for keys in keys_of(model) if not _may_stand_under_defaults(keys)}
    assert wanted - shown_keys(whole, files, model) == set()


def _may_stand_under_defaults(keys: tuple[str, ...]) -> bool:
    return keys[0] in ("groups", "hosts") and keys[-1] in Settings.model_fields


def test_every_example_line_is_right(whole: Path) -> None:
    found = load(whole, ROOT / "images", knobs=KNOBS, engines=ENGINES)
    assert "bastion" in found.hosts
    assert [role.name for role in found.deployments["kimi-k3"].roles][-1] == "decode-long"


def test_the_shipped_inventory_loads_as_it_is() -> None:
    found = load(SHIPPED, ROOT / "images", knobs=KNOBS, engines=ENGINES)
    assert [*found.hosts] == ["b200-01", "b300-04", "b300-07"]
    assert {host.kind for host in found.hosts.values()} == {"b200", "b300"}


@pytest.mark.parametrize(
    ("deployment", "roles"),
    [
        ("kimi-k3", {"prefill": ("b300-04", Mode.PREFILL), "decode": ("b300-07", Mode.DECODE)}),
        ("qwen-dp", {"serve": ("b200-01", Mode.AGGREGATED)}),
        ("qwen-1p1d", {"prefill": ("b200-01", Mode.PREFILL), "decode": ("b200-01", Mode.DECODE)}),
    ],
)
def test_the_deployments_of_both_reports_are_shipped(
    deployment: str, roles: dict[str, tuple[str, Mode]]
) -> None:
    found = load(SHIPPED).deployments[deployment].roles
    assert {role.name: (role.hosts[0], role.mode) for role in found} == roles


def test_addresses_of_the_example_belong_to_nobody() -> None:
    text = "".join(path.read_text() for path in SHIPPED.rglob("*.yml"))
    found = re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)
    assert found
    assert all(each.startswith(("192.0.2.", "198.51.100.", "203.0.113.")) for each in found)
