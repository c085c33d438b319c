"""The main job through OpenSSH's own server, so that nothing is proven against one server alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.fleet.fixtures import MakeSshd, make_sshd  # noqa: F401 - a fixture
from tests.fleet.keys import fingerprint

from .conftest import Lab, tree_digest

pytestmark = pytest.mark.xdist_group("lab")

PAIR = ("--host", "b300-[04,07]")


@pytest.fixture
def openssh(lab: Lab, make_sshd: MakeSshd, tmp_path: Path) -> Path:  # noqa: F811
    """The lab's inventory with its pair behind OpenSSH servers, one each; the folder of it."""
    folder = tmp_path / "inventory"
    text = (lab.inventory / "hosts.yml").read_text()
    document = yaml.safe_load(text)
    for name in ("b300-04", "b300-07"):
        server = make_sshd()
        login = server.host(name).login
        document["hosts"][name] |= {
            "address": login.address,
            "port": login.port,
            "user": login.user,
            "key_file": login.key_file,
            "host_key": fingerprint(server.host_key),
        }
    for part in ("kinds", "deployments"):
        (folder / part).mkdir(parents=True)
        for path in (lab.inventory / part).glob("*.yml"):
            (folder / part / path.name).write_text(path.read_text())
    (folder / "hosts.yml").write_text(yaml.safe_dump(document))
    return folder


def test_the_pair_is_made_and_the_second_run_changes_nothing(lab: Lab, openssh: Path) -> None:
    where = ("--inventory", str(openssh))
    before = tree_digest(lab.root("b300-04"))
    looked = lab.run("provision", *PAIR, *where, "--check")
    assert looked.returncode == 5, looked.stdout + looked.stderr
    assert tree_digest(lab.root("b300-04")) == before
    first = lab.run("provision", *PAIR, *where)
    assert first.returncode == 0, first.stdout + first.stderr
    assert len(lab.scripts()) == 2
    second = lab.run("provision", *PAIR, *where)
    assert "2 with nothing to change" in second.stdout


def test_costs_are_the_same_as_with_any_server(lab: Lab, openssh: Path) -> None:
    found = lab.objects("probe", "--host", "b300-04", "--inventory", str(openssh), "--stats")
    cost = found[-1]["hosts"]["b300-04"]
    assert (cost["connections"], cost["commands"]) == (1, 1)
