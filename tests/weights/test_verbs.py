"""weights.sync and weights.check as an operator calls them, on real hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.dynamo.processes import until
from tests.fleet.fixtures import MakeFleet
from tests.fleet.yard import FleetHost, Yard

from .hands import PATH, left, put, sums
from .models import hub_snapshot, model, shard

pytestmark = [pytest.mark.root, pytest.mark.slow]

DEPLOYMENT = """\
engine: vllm
model: {{served_name: toy, path: {path}}}
image: {{name: toy, reference: toy:1}}
in_container: false
roles:
  all: {{mode: aggregated, hosts: [{hosts}]}}
"""


@dataclass
class Desk:
    """A folder with an inventory of some hosts, and a way to call verbs there."""

    folder: Path
    yard: Yard

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a verb; its output is JSON."""
        command = (sys.executable, "-m", "bringup", words[0], *words[1:], "--json",
                   "--inventory", str(self.folder / "inventory"),
                   "--known-hosts", str(self.yard.known_hosts))  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True
        )

    def call(self, *words: str) -> tuple[int, list[dict[str, Any]]]:
        """Run a verb to its end; return its exit code and its objects, events left out."""
        process = self.start(*words)
        out, _ = process.communicate(timeout=900)
        told = [json.loads(line) for line in out.splitlines()]
        return process.returncode, [one for one in told if one["schema"] != "bringup.event/1"]


def desk(yard: Yard, tmp_path: Path, hosts: Sequence[FleetHost], **login: object) -> Desk:
    more = "".join(f", {key}: {value}" for key, value in {"user": "root", **login}.items())
    rows = [f"  {h.name}: {{address: {h.address}, key_file: {h.key}{more}}}\n" for h in hosts]
    folder = tmp_path / "inventory"
    (folder / "deployments").mkdir(parents=True)
    (folder / "hosts.yml").write_text("hosts:\n" + "".join(rows))
    names = ", ".join(host.name for host in hosts)
    (folder / "deployments/toy.yml").write_text(DEPLOYMENT.format(path=PATH, hosts=names))
    return Desk(tmp_path, yard)


def kinds(told: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in told if one["schema"] == f"bringup.{name}/1"]


def test_a_deployment_finds_its_own_source(fleet: MakeFleet, yard: Yard, tmp_path: Path) -> None:
    lacking, whole = fleet(2)
    put(whole, model(tmp_path / "K3"))
    one = desk(yard, tmp_path, [lacking, whole])
    words = ("weights.sync", "--deployment", "toy", "--host", lacking.name)
    assert one.call(*words, "--check")[0] == 5
    code, told = one.call(*words)
    (plan,), (copied,) = kinds(told, "weights-plan"), kinds(told, "weights-copied")
    assert (code, plan["source"]) == (0, f"{whole.name}:{PATH}")
    assert set(copied["from"]) == {whole.name}
    assert one.call(*words, "--check")[0] == 0
    assert one.call("weights.check", "--deployment", "toy")[0] == 0


def test_a_login_with_sudo_copies_as_root(fleet: MakeFleet, yard: Yard, tmp_path: Path) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    source.exec("chmod", "-R", "go-rwx", "/srv/models")
    one = desk(yard, tmp_path, [source, other], user="operator", sudo="true")
    code, _ = one.call(
        "weights.sync", "--from", f"{source.name}:{PATH}", "--to", f"{other.name}:{PATH}"
    )
    assert code == 0
    assert sums(other) == sums(source)
    assert left(source) == "" == left(other)


def test_a_login_without_rights_is_refused_before_anything_is_written(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    one = desk(yard, tmp_path, [source, other], user="guest")
    code, told = one.call(
        "weights.sync", "--from", f"{source.name}:{PATH}", "--to", f"{other.name}:{PATH}"
    )
    (error,) = kinds(told, "error")
    assert code == 4
    assert "may not write" in error["message"]


def test_a_login_without_root_serves_and_fetches_what_it_may_read(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    one = desk(yard, tmp_path, [source, other], user="guest")
    there = "/home/guest/K3"
    code, _ = one.call(
        "weights.sync", "--from", f"{source.name}:{PATH}", "--to", f"{other.name}:{there}"
    )
    assert code == 0
    assert sums(other, there) == sums(source)


def test_interrupting_leaves_parts_and_nothing_else(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3", shards=2, kib=8192))
    one = desk(yard, tmp_path, [source, other])
    words = ("weights.sync", "--from", f"{source.name}:{PATH}", "--to", f"{other.name}:{PATH}")
    with one.start(*words, "--limit-mb-s", "2") as process:
        try:
            assert process.stdout is not None
            far = (line for line in process.stdout if '"copy"' in line and '"share": 0.' in line)
            next(line for line in far if (json.loads(line)["share"] or 0) > 0.2)
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(60) == 130
        finally:
            process.kill()
    until(lambda: left(source) == "" == left(other), "nothing is left")
    code, told = one.call(*words)
    assert code == 0
    assert kinds(told, "weights-plan")[0]["there"] > 1_000_000
    assert sums(other) == sums(source)


def test_a_hubs_cache_is_a_source_and_its_broken_links_are_mended(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    snapshot = hub_snapshot(tmp_path / "hub", model(tmp_path / "K3"))
    home = f"/srv/hub/{snapshot.relative_to(tmp_path / 'hub')}"
    for host in (source, other):
        put(host, tmp_path / "hub", "/srv/hub")
    name = "model-00002-of-00003.safetensors"
    other.exec("sh", "-c", f'rm "$(readlink -f {home}/{name})"')
    one = desk(yard, tmp_path, [source, other])
    words = ("weights.sync", "--from", f"{source.name}:{home}", "--hashes")
    code, told = one.call(*words, "--to", f"{other.name}:{home}", "--to", f"{source.name}:{PATH}")
    assert code == 0
    plans = {plan["host"]: plan for plan in kinds(told, "weights-plan")}
    assert plans[other.name]["missing"] == [name]
    assert len(plans[source.name]["missing"]) == len(list(snapshot.iterdir()))
    assert one.call("weights.check", f"{other.name}:{home}", f"{source.name}:{PATH}")[0] == 0
    assert source.text("find", PATH, "-type", "l") == ""


def test_another_revision_is_refused_and_replaced_only_when_told(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "new", seed=1))
    put(other, model(tmp_path / "old", seed=50))
    before = sums(other)
    one = desk(yard, tmp_path, [source, other])
    words = ("weights.sync", "--from", f"{source.name}:{PATH}", "--to", f"{other.name}:{PATH}")
    code, told = one.call(*words)
    assert (code, sums(other)) == (4, before)
    assert "other weights of the same shape" in kinds(told, "error")[0]["message"]
    assert one.call(*words, "--replace")[0] == 0
    assert sums(other) == sums(source)


def test_a_mount_of_the_host_and_a_folder_here_are_sources_too(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    (host,) = fleet(1)
    put(host, model(tmp_path / "K3"), "/mnt/nas/K3")
    one = desk(yard, tmp_path, [host])
    code, _ = one.call("weights.sync", "--mounted", "/mnt/nas/K3", "--to", f"{host.name}:/srv/a")
    assert (code, sums(host, "/srv/a")) == (0, sums(host, "/mnt/nas/K3"))
    code, _ = one.call("weights.sync", "--from", str(tmp_path / "K3"), "--to", f"{host.name}:/b/c")
    assert (code, sums(host, "/b/c")) == (0, sums(host, "/mnt/nas/K3"))


def test_a_source_that_is_not_whole_is_refused(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    source.exec("rm", f"{PATH}/model-00003-of-00003.safetensors")
    one = desk(yard, tmp_path, [source, other])
    code, told = one.call(
        "weights.sync", "--from", f"{source.name}:{PATH}", "--to", f"{other.name}:{PATH}"
    )
    assert code == 4
    assert "model-00003-of-00003.safetensors: is missing" in kinds(told, "error")[0]["said"]


def test_sums_of_a_list_find_a_source_with_other_bytes(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    (host,) = fleet(1)
    folder = model(tmp_path / "K3")
    put(host, folder)
    listed = subprocess.run(
        "sha256sum *.safetensors", shell=True, cwd=folder, capture_output=True, check=True
    ).stdout
    (tmp_path / "sums").write_bytes(listed)
    one = desk(yard, tmp_path, [host])
    words = ("weights.check", f"{host.name}:{PATH}", "--sums", str(tmp_path / "sums"))
    assert one.call(*words)[0] == 0
    shard(folder / "model-00001-of-00003.safetensors", seed=77)
    put(host, folder)
    code, told = one.call(*words)
    assert code == 1
    assert "SHA-256" in kinds(told, "weights-check")[0]["faults"][0]["why"]
