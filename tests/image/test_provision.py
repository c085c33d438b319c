"""`provision` brings the image: two hosts with engines of their own, over real SSH."""

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

from bringup.core.reading import Absent, Known, Reading, Unknown
from bringup.core.rules import Finding, Level, Status
from bringup.core.sameness import Identity
from bringup.edge.image_file import read_image
from bringup.image.context import LABEL
from bringup.image.wanted import Offer, settled, wanted
from tests.fleet.yard import FleetHost, open_yard

from . import standin
from .bench import identity
from .dockerd import Dockerd, dockerd
from .folders import ROOT, make_folder

CONTEXT, OTHER = "sha256:c", "sha256:o"
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
OFFER = Offer("k3", "k3:1", CONTEXT, Absent("no record"))


def held(identity: str, context: str = "") -> Reading[Identity]:
    return Known(Identity(identity, labels={LABEL: context} if context else {}))


@pytest.mark.parametrize(
    ("built", "p", "d", "identity", "level", "words"),
    [
        (Known(A), Absent(), Absent(), A, None, ""),
        (Known(A), held(B, OTHER), held(A, CONTEXT), A, None, ""),
        (Absent(), Absent(), Absent(), "", Level.BLOCK, "image.build k3"),
        (Absent(), held(B, OTHER), held(B, OTHER), "", Level.BLOCK, "built from other inputs"),
        (Unknown("no docker"), Absent(), Absent(), "", Level.BLOCK, "no docker"),
        (Absent(), held(A, CONTEXT), held(A, CONTEXT), "", None, ""),
        (Absent(), Absent(), held(A, CONTEXT), "", Level.BLOCK, "image.ship k3 --host p --on d"),
        (Absent(), held(A), held(A), "", Level.NOTE, "not built by bringup"),
        (Absent(), Unknown("timed out"), Absent(), "", Level.NOTE, "unknown: timed out"),
    ],
)
def test_what_a_host_is_to_hold(
    built: Reading[str],
    p: Reading[Identity],
    d: Reading[Identity],
    identity: str,
    level: Level | None,
    words: str,
) -> None:
    offer = Offer("k3", "k3:1", CONTEXT, built)
    found = wanted(offer, {"p": p, "d": d}, "p")
    assert found.identity == identity
    assert (found.finding.level if found.finding else None) is level
    told = found.finding
    assert words in (" ".join((*told.evidence, told.remedy)) if told else "")


def pair(level: Level) -> Finding:
    return Finding("pair-image", "", Status.FAIL, level, "", ("p: a", "d: b"), "", "", "")


def test_pair_that_this_run_makes_alike_is_no_obstacle() -> None:
    both = {"p": held(B), "d": held(A)}
    (found,) = settled((pair(Level.BLOCK),), A, both, frozenset(("p", "d")))
    assert (found.level, found.remedy) == (Level.WARN, f"this run ships {A[:19]} to them")


def test_host_that_stays_behind_is_named_with_the_command_for_all() -> None:
    both = {"p": held(B), "d": held(B)}
    (found,) = settled((pair(Level.OK),), A, both, frozenset(("d",)))
    assert found.level is Level.WARN
    assert f"p stays at {B[:19]}" in found.evidence[-1]
    assert found.remedy == "bringup provision --host d --host p"


# From here on with real hosts. They have no GPUs: what looks at GPUs and model is left out.

BRINGUP = """
from bringup import decide
LEFT_OUT = ("GPU-", "STO-", "NET-", "CTR-03", "container-engine")
decide.CHECKS = tuple(row for row in decide.CHECKS if not row.id.startswith(LEFT_OUT))
decide.RULES = tuple(row for row in decide.RULES if not row.id.startswith(LEFT_OUT))
from bringup.doors.cli import main
main()
"""
REFERENCE = "small:1.0"
DEPLOYMENT = {
    "engine": "dynamo.sglang",
    "model": {"served_name": "toy", "path": "/model"},
    "image": "small",
    "accept_tcp": True,
    "services": {"etcd": ["http://127.0.0.1:2379"]},
    "knobs": {"gpu_access": "none", "memlock": "65536", "shm": "64m"},
}


@dataclass
class Said:
    """How one call ended: exit code, and its JSON documents by schema."""

    code: int
    documents: list[dict[str, Any]]
    error: str

    def of(self, schema: str) -> list[dict[str, Any]]:
        return [d for d in self.documents if d.get("schema") == f"bringup.{schema}/1"]

    def steps(self, host: str) -> list[dict[str, Any]]:
        found = [one for one in self.of("provision") if one["host"] == host]
        assert found, (self.code, self.documents[-2:], self.error)
        steps: list[dict[str, Any]] = found[-1]["plan"]["steps"]
        return steps

    def finding(self, schema: str, name: str) -> dict[str, Any]:
        every = [f for one in self.of(schema) for f in one["plan"]["findings"]]
        found = [f for f in every if f["id"] == name]
        assert found, sorted({f["id"] for f in every})
        return dict(found[-1])


@dataclass
class Desk:
    """An operator's folder: an inventory of two hosts that serve one deployment in containers."""

    folder: Path
    builder: Dockerd
    hosts: list[FleetHost]

    def bringup(self, verb: str, *words: str) -> Said:
        done = subprocess.run(
            [sys.executable, "-c", BRINGUP, verb, *words, "--known-hosts", "known", "--json"],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "BRINGUP_ENGINE": " ".join(self.builder.words),
                "PATH": f"/usr/sbin:/usr/bin:/sbin:/bin:{os.environ['PATH']}",
            },
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        return Said(done.returncode, [json.loads(x) for x in done.stdout.splitlines()], done.stderr)

    def build(self) -> str:
        """Build as `image.build` would, without its gate: the base here has no Python."""
        context = read_image(self.folder / "images/small").context.digest
        words = ("build", "-q", "--label", f"{LABEL}={context}", "-t", REFERENCE, "-")
        self.builder.docker(*words, input=f"FROM base:1\nLABEL mark={context}\n")
        return identity(self.builder, REFERENCE)

    def held(self) -> list[str]:
        """What each host holds under the image's name."""
        look = ("docker", "image", "inspect", "-f", "{{.Id}}", REFERENCE)
        return [h.exec(*look, check=False).stdout.decode().strip() for h in self.hosts]


@pytest.fixture(scope="module")
def desk(engines: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("provision")
    make_folder(folder, packages=[], no_deps=[], gate=[])
    with (
        open_yard() as yard,
        yard.hosts(2, docker=True) as hosts,
        dockerd(engines / "provision") as builder,
    ):
        builder.docker("import", str(standin.small_tree(folder)), "base:1")
        for name in ("deployments", "kinds"):
            (folder / "inventory" / name).mkdir(parents=True)
        entries = {h.name: {"address": h.address, "key_file": str(h.key)} for h in hosts}
        document = {"defaults": {"user": "root"}, "hosts": entries}
        (folder / "inventory/hosts.yml").write_text(yaml.safe_dump(document))
        roles = {
            m: {"mode": m, "hosts": h.name}
            for m, h in zip(("prefill", "decode"), hosts, strict=True)
        }
        deployment = yaml.safe_dump({**DEPLOYMENT, "roles": roles})
        (folder / "inventory/deployments/toy.yml").write_text(deployment)
        (folder / "known").write_text(yard.known_hosts.read_text())
        yield Desk(folder, builder, hosts)


@dataclass
class Life:
    """What each call said, in order; and what the hosts held after it."""

    said: dict[str, Said]
    held: dict[str, list[str]]
    built: str


@pytest.fixture(scope="module")
def life(desk: Desk) -> Life:
    said, held = dict[str, Said](), dict[str, list[str]]()

    def do(step: str, verb: str, *words: str) -> None:
        said[step] = desk.bringup(verb, *words)
        held[step] = desk.held()

    pair = ("--host", "h[1-2]")
    do("not built", "provision", *pair)
    built = desk.build()
    do("check", "provision", *pair, "--check")
    do("ship", "provision", *pair)
    do("again", "provision", *pair, "--stats")
    other = b"FROM small:1.0\nLABEL other=1\n"
    desk.hosts[1].exec("docker", "build", "-q", "-t", REFERENCE, "-", stdin=other)
    do("start differing", "serve.start", "--deployment", "toy", "--check")
    do("mend one", "provision", "--host", "h2")
    do("start alike", "serve.start", "--deployment", "toy", "--check")
    (desk.folder / "images/small/image.yml").open("a").write("arguments: {CHANGED: '1'}\n")
    (desk.folder / "images/small/Dockerfile.j2").open("a").write("ARG CHANGED\n")
    do("changed", "provision", *pair, "--check")
    do("coming", "provision", *pair, "--check", "--build")
    return Life(said, held, built)


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.xdist_group("image")
class TestProvision:
    def test_image_that_nobody_built_blocks_with_the_command_that_builds_it(
        self, life: Life
    ) -> None:
        said = life.said["not built"]
        found = said.finding("provision", "image-built")
        assert said.code == 4
        assert found["level"] == "block"
        assert found["remedy"].startswith("bringup image.build small ")
        assert life.held["not built"] == ["", ""]

    def test_check_shows_way_and_bytes_and_writes_nothing(self, life: Life) -> None:
        said = life.said["check"]
        step = said.steps("h1")[0]
        assert said.code == 5
        assert "layers, about" in step["title"]
        assert step["actions"][0]["id"] == life.built
        assert 0 < step["actions"][0]["bytes"] < 2_000_000
        assert life.held["check"] == ["", ""]

    def test_both_hosts_hold_the_built_image_before_scripts_are_written(self, life: Life) -> None:
        said = life.said["ship"]
        assert said.code == 0, said.documents[-1]
        assert [step["id"].partition(":")[0] for step in said.steps("h1")] == ["image", "file"]
        assert life.held["ship"] == [life.built, life.built]

    def test_second_run_has_nothing_to_do_at_the_usual_cost(self, life: Life) -> None:
        said = life.said["again"]
        assert {step["state"] for host in ("h1", "h2") for step in said.steps(host)} == {"same"}
        (stats,) = said.of("stats")
        costs = {(cost["connections"], cost["commands"]) for cost in stats["hosts"].values()}
        assert costs == {(1, 2)}

    def test_pair_on_different_images_does_not_start(self, life: Life) -> None:
        said = life.said["start differing"]
        found = said.finding("serve", "pair-image")
        assert said.code == 4
        assert found["evidence"][0] == "cannot start workers on different images"
        assert found["remedy"] == "bringup image.ship small --host h1 --host h2"

    def test_host_that_strayed_gets_its_name_moved_back_without_a_byte(self, life: Life) -> None:
        said = life.said["mend one"]
        assert said.code == 0, said.documents[-1]
        assert "named, nothing to send" in said.steps("h2")[0]["title"]
        assert life.held["mend one"] == [life.built, life.built]
        assert life.said["start alike"].code == 5

    def test_changed_folder_blocks_until_it_is_built(self, life: Life) -> None:
        said = life.said["changed"]
        found = said.finding("provision", "image-built")
        assert said.code == 4
        assert "was built from other inputs" in found["evidence"][0]
        assert life.said["coming"].finding("provision", "image-built")["level"] == "warn"
        assert life.said["coming"].code == 5
