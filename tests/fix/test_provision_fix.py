"""`provision --fix` and `undo` over SSH, on a host with systemd, apt and stand-in packages."""

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

from ..fleet.yard import FleetHost, Yard

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-hosts")]


@dataclass(frozen=True)
class Desk:
    """An operator's folder: an inventory of the one host, receipts, known hosts."""

    folder: Path
    host: FleetHost
    yard: Yard

    def run(self, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
        words = [
            sys.executable, "-m", "bringup", verb, "--host", self.host.name, *more,
            "--inventory", str(self.folder / "inventory"), "--state", str(self.folder / "state"),
            "--known-hosts", str(self.yard.known_hosts),
        ]  # fmt: skip
        return subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900,
            env={**os.environ, "HOME": str(self.folder)},
        )  # fmt: skip

    def objects(self, verb: str, *more: str) -> list[dict[str, Any]]:
        done = self.run(verb, "--json", *more)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        kept = [one for one in found if one.get("schema") != "bringup.event/1"]
        assert kept, done.stdout + done.stderr
        return kept

    def receipts(self) -> list[str]:
        return sorted(p.stem for p in (self.folder / "state/receipts").rglob("*.json"))


def desk_for(
    folder: Path, host: FleetHost, yard: Yard, *, deployment: str = "", **more: object
) -> Desk:
    """Lay out an inventory with one host, and a deployment on it where there is text of one."""
    said = {"address": host.address, "user": "root", "key_file": str(host.key), **more}
    place = folder / "inventory"
    (place / "deployments").mkdir(parents=True)
    (place / "kinds").mkdir()
    for kind in (ROOT / "inventory/kinds").glob("*.yml"):
        (place / "kinds" / kind.name).write_text(kind.read_text())
    (place / "hosts.yml").write_text(json.dumps({"hosts": {host.name: said}}))
    if deployment:
        (place / "deployments/served.yml").write_text(deployment)
    return Desk(folder, host, yard)


@pytest.fixture
def desk(yard: Yard, bare: Path, tmp_path: Path) -> Iterator[Desk]:
    """An operator before a bare host."""
    with yard.hosts(1, init="systemd", over=bare) as (host,):
        yield desk_for(tmp_path, host, yard, gpu_count=8)


TREES = "/etc /usr/local/bin /usr/bin /lib/systemd /usr/share/stand-in"


def tree(host: FleetHost) -> str:
    """Return every name, kind, mode, owner and content below folders that fixes write to."""
    words = (
        "find $0 -printf '%y %m %U:%G %p %l\\n' 2>/dev/null | sort; "
        "find /etc /usr/share/stand-in -type f -exec sha256sum {} + 2>/dev/null | sort -k 2"
    )
    return host.text("sh", "-c", words.replace("$0", TREES))


def statuses(objects: list[dict[str, Any]]) -> dict[str, str]:
    return {f["id"]: f["status"] for f in objects[0]["plan"]["findings"]}


def test_a_driver_only_host_becomes_ready_for_containers_and_undo_brings_its_tree_back(
    desk: Desk,
) -> None:
    before = tree(desk.host)
    only = ("--fix-only", "CTR-01,CTR-02,CTR-03,CTR-09", "--fix-level", "service")
    check = desk.run("provision", *only, "--check")
    assert "install docker.io" in check.stdout, check.stdout + check.stderr
    assert tree(desk.host) == before, "check mode writes nothing"

    first = desk.objects("provision", *only)
    found = statuses(first)
    assert [found[id_] for id_ in ("CTR-01", "CTR-02", "CTR-03", "CTR-09")] == ["pass"] * 4
    assert desk.host.text("systemctl", "is-active", "docker").strip() == "active"
    assert len(first[0]["fix_receipts"]) == 3, "engine, then toolkit and logs, then the runtime"

    second = desk.objects("provision", *only)
    assert second[0].get("fix_receipts", []) == []

    undone = desk.run("undo", "--to", desk.receipts()[0])
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert tree(desk.host) == before


def test_undo_is_refused_where_somebody_changed_it_since(desk: Desk) -> None:
    desk.run("provision", "--fix-only", "CTR-01")
    desk.run("provision", "--fix-only", "CTR-09", "--fix-level", "service")
    desk.host.exec("sh", "-c", "echo '{}' >/etc/docker/daemon.json")
    before = tree(desk.host)
    done = desk.run("undo")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "somebody changed" in done.stderr + done.stdout
    assert tree(desk.host) == before


def test_an_unknown_finding_is_refused_with_the_nearest_name(desk: Desk) -> None:
    done = desk.run("provision", "--fix-only", "CTR-1")
    assert done.returncode == 2
    assert "no such finding" in done.stderr + done.stdout


def test_a_fix_that_fails_is_told_in_a_line_and_does_not_hold_up_the_others(desk: Desk) -> None:
    desk.host.exec("sh", "-c", "rm /var/lib/stand-in/nvidia-container-toolkit*; apt-get update")
    desk.run("provision", "--fix-only", "CTR-01")
    desk.host.exec("sh", "-c", "cd /var/lib/stand-in && sed -i '/nvidia-container-toolkit$/,/^$/d' "
                   "Packages && apt-get -q update")  # fmt: skip
    words = ("--fix-only", "CTR-02,CTR-09", "--fix-level", "service")
    done = desk.run("provision", *words)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "no repository of this host offers nvidia-container-toolkit" in said
    assert "ran     apt install nvidia-container-toolkit" in said
    assert "max-size" in desk.host.text("cat", "/etc/docker/daemon.json")
