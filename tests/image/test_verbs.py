"""The verbs as an operator uses them: two hosts with their own engines, the life of an image."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fleet.yard import FleetHost, open_yard

from . import standin
from .bench import LIGHT, REFERENCE
from .conftest import BASE, SETTINGS
from .dockerd import Dockerd
from .folders import ROOT
from .k3 import make_k3

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.xdist_group("image")]

NAME = "dynamo-sglang-k3"


@dataclass
class Said:
    """How one call ended: exit code, JSON documents, and what people would have read."""

    code: int
    documents: list[dict[str, Any]]
    error: str

    def document(self, schema: str) -> dict[str, Any]:
        found = [d for d in self.documents if d.get("schema") == f"bringup.{schema}/1"]
        assert found, (self.code, self.documents[-3:], self.error)
        return found[-1]


@dataclass
class Desk:
    """An operator's folder, with an engine here and hosts out there."""

    folder: Path
    builder: Dockerd
    hosts: list[FleetHost]
    wheels: Path

    def bringup(self, verb: str, *words: str) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "bringup", verb, *words, "--json"],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "BRINGUP_ENGINE": " ".join(self.builder.words),
                "PATH": f"/usr/sbin:/usr/bin:/sbin:/bin:{os.environ['PATH']}",
            },
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        documents = [json.loads(line) for line in done.stdout.splitlines()]
        return Said(done.returncode, documents, done.stderr)

    def build(self, *more: str) -> Said:
        return self.bringup(
            "image.build", NAME, "--fetch-wheels", "--wheels", str(self.wheels),
            "--network", "none", *more,
        )  # fmt: skip

    def ship(self, *more: str) -> Said:
        return self.bringup("image.ship", NAME, "--host", "h[1-2]", "--known-hosts", "known", *more)

    def identity(self, host: FleetHost, reference: str = REFERENCE) -> str:
        done = host.exec("docker", "image", "inspect", "-f", "{{.Id}}", reference, check=False)
        return done.stdout.decode().strip()


@pytest.fixture(scope="module")
def desk(
    builder: Dockerd, wheel_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    make_k3(folder, mark="# verbs one", tag="verbs", base={"reference": BASE})
    with open_yard() as yard, yard.hosts(2, docker=True) as hosts:
        (folder / "inventory").mkdir()
        entries = {h.name: {"address": h.address, "key_file": str(h.key)} for h in hosts}
        document = {"defaults": {"user": "root"}, "hosts": entries}
        (folder / "inventory/hosts.yml").write_text(yaml.safe_dump(document))
        (folder / "known").write_text(yard.known_hosts.read_text())
        yield Desk(folder, builder, hosts, wheel_folder)


TAGGED = f"{NAME}:verbs"


@dataclass
class Life:
    """What each call said in the life of one image, in order."""

    said: dict[str, Said]
    desk: Desk

    def __getitem__(self, step: str) -> Said:
        return self.said[step]


@pytest.fixture(scope="module")
def life(desk: Desk) -> Life:
    """Build, carry, change a patch, build, carry, go back, clean up: each call once."""
    said: dict[str, Said] = {}
    said["diff before"] = desk.bringup("image.diff", NAME)
    said["build"] = desk.build()
    said["build again"] = desk.build()
    said["routes"] = desk.ship("--check")
    said["ship"] = desk.ship("--relay")
    said["ship again"] = desk.ship()
    make_k3(desk.folder, mark="# verbs two", tag="verbs", base={"reference": BASE})
    said["diff"] = desk.bringup("image.diff", NAME)
    said["build two"] = desk.build()
    said["ship two"] = desk.ship()
    said["history"] = desk.bringup("image.history", NAME)
    hosts = ("--host", "h[1-2]", "--known-hosts", "known")
    said["rollback check"] = desk.bringup("image.rollback", NAME, *hosts, "--check")
    said["rollback"] = desk.bringup("image.rollback", NAME, *hosts)
    said["after rollback"] = desk.ship("--check")
    prune = ("image.prune", NAME, "--keep", "0", *hosts)
    said["prune check"] = desk.bringup(*prune, "--check")
    said["prune"] = desk.bringup(*prune)
    said["prune again"] = desk.bringup(*prune, "--check")
    return Life(said, desk)


def test_missing_image_is_exit_5_and_built_image_is_exit_0(life: Life) -> None:
    assert life["diff before"].code == 5
    assert life["build"].code == 0
    assert life["build"].document("image-build")["built"] is True


def test_second_build_does_nothing_and_says_why(life: Life) -> None:
    document = life["build again"].document("image-build")
    assert document["built"] is False
    assert document["why"].startswith("same, because context sha256:")


def test_ways_are_shown_before_anything_is_sent(life: Life) -> None:
    routes = life["routes"].document("image-routes")["routes"]
    assert life["routes"].code == 5
    assert {route["way"] for route in routes} == {"layers"}
    assert all(route["sends"] > 50_000_000 for route in routes)


def test_shipped_image_has_one_id_on_both_hosts(life: Life) -> None:
    hosts = life["ship"].document("image-shipment")["hosts"]
    built = life["build"].document("image-build")["id"]
    assert [host["identity"] for host in hosts] == [built, built]
    assert life["ship again"].document("image-shipment")["hosts"][0]["sent"] == 0


def test_second_host_got_the_first_copy_from_the_first_one(life: Life) -> None:
    """The one that is served first is sent all of it; the other fetches the parts from there."""
    hosts = life["ship"].document("image-shipment")["hosts"]
    few, many = sorted(host["sent"] for host in hosts)
    assert few == 0
    assert many > 50_000_000
    assert [host.text("docker", "ps", "-q") for host in life.desk.hosts] == ["", ""]


def test_changed_patch_is_exit_5_and_is_named(life: Life) -> None:
    changes = life["diff"].document("image-diff")["changes"]
    assert life["diff"].code == 5
    assert [change["name"] for change in changes] == ["patches/sglang/srt/mem_cache/radix_cache.py"]


def test_changed_patch_sends_kilobytes(life: Life) -> None:
    hosts = life["ship two"].document("image-shipment")["hosts"]
    assert all(0 < host["sent"] < 1_000_000 for host in hosts)


def test_history_names_both_builds_and_marks_the_current(life: Life) -> None:
    document = life["history"].document("image-history")
    newest, oldest = document["records"]
    assert newest["id"] == document["current"]
    assert oldest["id"] == life["build"].document("image-build")["id"]


@pytest.mark.parametrize(
    ("step", "code"), [("rollback check", 5), ("prune check", 5), ("prune again", 0)]
)
def test_check_mode_tells_by_its_exit_code_whether_something_would_change(
    life: Life, step: str, code: int
) -> None:
    assert life[step].code == code, life[step]


def test_what_check_mode_of_a_prune_names_is_still_there_for_the_prune(life: Life) -> None:
    foreseen, done = (
        [host["names"] for host in life[step].document("image-prune")["hosts"]]
        for step in ("prune check", "prune")
    )
    assert foreseen == done


def test_rollback_restores_the_first_image_on_both_hosts(life: Life) -> None:
    hosts = life["rollback"].document("image-rollback")["hosts"]
    first = life["build"].document("image-build")["id"]
    assert [host["identity"] for host in hosts] == [first, first]
    routes = life["after rollback"].document("image-routes")["routes"]
    assert {route["way"] for route in routes} == {"named"}


def test_prune_takes_old_names_of_this_image_alone(life: Life) -> None:
    hosts = life["prune"].document("image-prune")["hosts"]
    second = life["build two"].document("image-build")["id"]
    assert [host["names"] for host in hosts] == [[f"{TAGGED}-{second[7:19]}"]] * 2
    for host in life.desk.hosts:
        first = life["build"].document("image-build")["id"]
        assert life.desk.identity(host, TAGGED) == first
        assert life.desk.identity(host, second) == ""


def test_pin_without_a_digest_says_why_and_records_the_packages(desk: Desk) -> None:
    foreseen = desk.bringup("image.pin", NAME, "--check")
    assert foreseen.code == 5
    said = desk.bringup("image.pin", NAME)
    assert desk.bringup("image.pin", NAME, "--check").code == 0
    pinned = said.document("image-pin")["pinned"]
    assert pinned["digest"] == ""
    assert "carries no digest" in pinned["why"]
    assert pinned["packages"]["sglang"] == "0.5.18"
    text = (desk.folder / "images" / NAME / "image.yml").read_text()
    assert "packages: base-packages.txt" in text
    checked = desk.bringup("image.check", NAME, "--wheels", str(desk.wheels))
    levels = {f["id"]: f["level"] for f in checked.document("image-check")["findings"]}
    assert levels["IMG-02"] == "ok"


def test_unknown_image_names_those_that_are_there(desk: Desk) -> None:
    said = desk.bringup("image.build", "dynamo-sglang")
    assert said.code == 2
    assert "did you mean dynamo-sglang-k3" in json.dumps(said.documents)


def test_build_on_a_host_without_the_base_says_how_to_give_it(desk: Desk) -> None:
    said = desk.build("--on", "h1", "--known-hosts", "known")
    error = said.documents[-1]
    assert said.code == 1, said
    assert f"docker pull {BASE}" in json.dumps(error)


def test_image_built_on_a_host_reaches_the_other_one(desk: Desk) -> None:
    """The host that builds pushes to the controller's registry through a tunnel."""
    one, other = desk.hosts
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    tree = standin.base_tree().read_bytes()
    one.exec("docker", "import", *settings, "-", BASE, stdin=tree)
    make_k3(desk.folder, mark="# remote", tag="remote", base={"reference": BASE}, **LIGHT)
    on = ("--on", "h1", "--known-hosts", "known")
    built = desk.build(*on)
    assert built.code == 0, (built.documents[-1], built.error)
    shipped = desk.bringup("image.ship", NAME, "--host", "h2", *on)
    assert shipped.code == 0, (shipped.documents[-1], shipped.error)
    identity = built.document("image-build")["id"]
    assert desk.identity(one, f"{NAME}:remote") == identity
    assert desk.identity(other, f"{NAME}:remote") == identity


def test_standin_is_what_the_tests_say(builder: Dockerd) -> None:
    body = builder.docker("run", "--rm", BASE, "cat", f"/{standin.SOURCE}/sglang/version.py")
    assert body.encode() == standin.source("sglang/version.py").strip()
