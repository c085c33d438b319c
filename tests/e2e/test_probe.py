"""A probe over a real SSH server: one trip, true verdicts, captures that replay."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from .conftest import Lab, tree_digest

pytestmark = pytest.mark.xdist_group("lab")


def test_a_probe_is_one_connection_and_one_command_and_changes_nothing(lab: Lab) -> None:
    before = tree_digest(lab.root("b200-01"))
    found = lab.objects("probe", "--host", "b200-01", "--stats")
    assert found[-1]["schema"] == "bringup.stats/1"
    cost = found[-1]["hosts"]["b200-01"]
    assert (cost["connections"], cost["commands"]) == (1, 1)
    assert tree_digest(lab.root("b200-01")) == before


def test_a_probe_tells_by_what_the_host_key_was_trusted(lab: Lab) -> None:
    (host,) = lab.objects("probe", "--host", "b200-01")[0]["hosts"]
    (key,) = (finding for finding in host["findings"] if finding["id"] == "SEC-01")
    assert key["level"] == "ok"
    assert re.search(r"pinned: SHA256:\S{40,}", json.dumps(key))


def test_a_broken_host_is_blocked_by_what_is_broken(lab: Lab) -> None:
    done = lab.run("probe", "--host", "b300-13", "--json")
    assert done.returncode == 4
    document = next(
        one for line in done.stdout.splitlines() if (one := json.loads(line)).get("verdict")
    )
    (host,) = document["hosts"]
    bad = {finding["id"] for finding in host["findings"] if finding["level"] == "block"}
    assert {"FAB-01", "FAB-02", "FAB-03", "FAB-04", "GPU-22"} <= bad


def test_a_capture_replays_to_the_verdict_of_its_host(lab: Lab, tmp_path: Path) -> None:
    live = lab.objects("probe", "--host", "b300-13")[-1]
    lab.run("probe.capture", "--host", "b300-13", "--into", str(tmp_path))
    kept = lab.objects("probe", "--from", str(tmp_path / "b300-13.txt"))[-1]
    told = [
        {finding["id"]: finding["status"] for finding in one["hosts"][0]["findings"]}
        for one in (live, kept)
    ]
    assert kept["verdict"] == live["verdict"] == "blocked"
    assert told[0] == told[1]


def test_a_capture_holds_no_name_or_address_of_the_host(lab: Lab, tmp_path: Path) -> None:
    lab.run("probe.capture", "--host", "b300-04", "--into", str(tmp_path))
    text = (tmp_path / "b300-04.txt").read_text()
    assert "b300-04" not in text
    uuids = [word for word in text.split() if word.startswith("GPU-") and len(word) > 30]
    assert all("00000000-0000-0000-0000" in word for word in uuids)


def test_what_changed_since_the_last_look_is_told_in_words(lab: Lab, tmp_path: Path) -> None:
    lab.run("probe.capture", "--host", "b300-04", "--into", str(tmp_path))
    (port,) = lab.root("b300-04").glob("sys/class/infiniband/mlx5_8/ports/1/state")
    port.write_text("1: DOWN\n")
    kept = str(tmp_path / "b300-04.txt")
    done = lab.run("probe", "--host", "b300-04", "--changed-since", kept, "--no-facts")
    assert "mlx5_8" in done.stdout.partition("b300-04\n")[2] or "mlx5_8" in done.stdout
    assert "DOWN" in done.stdout


def test_reports_for_ci_and_for_sharing_are_written(lab: Lab, tmp_path: Path) -> None:
    junit, page = tmp_path / "probe.xml", tmp_path / "probe.html"
    lab.run("probe", "--host", "b300-13", "--junit", str(junit), "--html", str(page))
    assert "<failure" in junit.read_text()
    html = page.read_text()
    assert "FAB-01" in html
    assert "default-src 'none'" in html, "nothing is fetched from elsewhere"
    assert "<script src" not in html


def test_a_capture_that_is_none_is_refused(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("no answer\n")
    done = lab.run("probe", "--from", str(tmp_path / "x.txt"))
    assert done.returncode == 2
    assert "cannot read" in done.stderr


def test_a_host_that_went_down_tells_the_age_of_its_kept_facts(lab: Lab) -> None:
    lab.run("probe", "--host", "b200-01")
    hosts = lab.inventory / "hosts.yml"
    hosts.write_text(re.sub(r"host_key: \S+", f"host_key: SHA256:{'A' * 43}", hosts.read_text()))
    done = lab.run("probe", "--host", "b200-01")
    assert done.returncode == 3
    assert re.search(r"last seen \d+ (seconds|minutes) ago", done.stdout), done.stdout


def test_looking_needs_no_place_to_keep_what_was_seen(lab: Lab) -> None:
    (lab.folder / "occupied").write_text("")
    done = lab.run("probe", "--host", "b200-01", "--state", str(lab.folder / "occupied/state"))
    assert done.returncode == 0, done.stderr
    assert "nothing is kept" in done.stderr
    assert "degraded  b200-01" in done.stdout


def test_a_terminal_that_knows_no_arrows_gets_the_rest(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    text = lab.run("probe", "--host", "b300-04")
    assert "ready     b300-04" in text.stdout, text.stderr


def test_a_host_that_gives_no_answer_keeps_no_other_from_being_captured(
    lab: Lab, tmp_path: Path
) -> None:
    file = lab.inventory / "hosts.yml"
    hosts = yaml.safe_load(file.read_text())
    hosts["hosts"]["b200-01"]["host_key"] = f"SHA256:{'A' * 43}"
    file.write_text(yaml.safe_dump(hosts))
    wanted = ("--host", "b200-01", "--host", "b300-04")
    done = lab.run("probe.capture", *wanted, "--into", str(tmp_path))
    assert done.returncode == 3
    assert "cannot trust b200-01" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["b300-04.txt"]
