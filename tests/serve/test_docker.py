"""Serving on hosts with a real docker: start, drift, stop, foreign containers, kills, reboots."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bringup.edge.image_store import ImageStore
from bringup.image.record import Record
from tests.dynamo.processes import until
from tests.fleet.yard import FleetHost, Yard

from .docked import NAME, TAG, Docked, docked

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("serve-docker")]


@pytest.fixture(scope="module")
def fleet_of_three(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docked]:
    with docked(tmp_path_factory.mktemp("docked"), yard, 3) as made:
        yield made


@pytest.fixture
def pair(fleet_of_three: Docked) -> Docked:
    """A prefill worker on h1 and a decode worker on h2, written and not started; h3 is spare."""
    made = fleet_of_three
    made.clear()
    made.services, made.knobs, made.is_pinned = {}, {}, True
    for host in made.hosts:
        host.exec("sh", "-c", "mkdir -p /model && echo '{}' >/model/config.json")
    made.write(
        {
            "prefill": {"mode": "prefill", "hosts": made.hosts[0].name},
            "decode": {"mode": "decode", "hosts": made.hosts[1].name},
        }
    )
    return made


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def start(made: Docked, *more: str) -> None:
    done = made.run("serve.start", *more)
    assert done.returncode == 0, said(done)


def names(made: Docked) -> tuple[str, str]:
    return f"{made.hosts[0].name}/prefill", f"{made.hosts[1].name}/decode"


def test_a_pair_starts_once_and_stops_with_its_logs_kept(pair: Docked) -> None:
    prefill, decode = names(pair)
    assert pair.states() == {prefill: "not there", decode: "not there"}
    check = pair.run("serve.start", "--check")
    assert check.returncode == 5
    assert pair.states() == {prefill: "not there", decode: "not there"}
    start(pair)
    assert pair.states() == {prefill: "runs", decode: "runs"}
    before = pair.ids(pair.hosts[0]) + pair.ids(pair.hosts[1])
    again = pair.run("serve.start")
    assert "already so" in again.stdout
    assert pair.ids(pair.hosts[0]) + pair.ids(pair.hosts[1]) == before
    stopped = pair.run("serve.stop")
    assert stopped.returncode == 0, said(stopped)
    assert pair.states() == {prefill: "not there", decode: "not there"}
    assert "--disaggregation-mode decode" in pair.run("serve.logs", "--role", "decode").stdout


def test_a_drifted_worker_is_shown_and_kept_until_somebody_says_recreate(pair: Docked) -> None:
    start(pair)
    before = pair.ids(pair.hosts[1])
    pair.write(page_size=64)
    assert set(pair.states().values()) == {"drifted"}
    refused = pair.run("serve.start")
    assert refused.returncode == 4
    assert "+ --page-size 64" in refused.stdout
    assert pair.ids(pair.hosts[1]) == before
    start(pair, "--recreate")
    assert set(pair.states().values()) == {"runs"}
    assert pair.ids(pair.hosts[1]) != before


@contextmanager
def moved(made: Docked, *hosts: FleetHost) -> Iterator[None]:
    """Let the image's name stand for another image on some hosts, as a newer build would."""
    for number, host in enumerate(hosts):
        change = ("commit", "--change", f"LABEL bringup.context=sha256:{number}", "base")
        host.exec("docker", "create", "--name", "base", made.image, "sh")
        host.exec("docker", *change, TAG)
        host.exec("docker", "rm", "base")
    try:
        yield
    finally:
        for host in hosts:
            host.exec("docker", "tag", made.image, TAG)


def test_a_worker_of_an_older_image_of_the_same_tag_is_drifted(pair: Docked) -> None:
    pair.is_pinned = False
    pair.write()
    start(pair)
    prefill, decode = names(pair)
    before = pair.ids(pair.hosts[1])
    with moved(pair, pair.hosts[1]):
        assert pair.states() == {prefill: "runs", decode: "drifted"}
        script = f"/opt/bringup/serve/{NAME}/serve_dynamo_decode.sh"
        told = pair.hosts[1].exec("sh", script, "--status", check=False)
        assert (told.returncode, f"and {TAG} is sha256:" in told.stdout.decode()) == (4, True)
        refused = pair.run("serve.start", "--role", "decode")
        assert refused.returncode == 4, said(refused)
        assert "an image that its name has left" in refused.stdout
        assert f"- image {pair.image.removeprefix('sha256:')[:12]}" in refused.stdout
        assert pair.ids(pair.hosts[1]) == before
        start(pair, "--role", "decode", "--recreate")
        assert pair.states() == {prefill: "runs", decode: "runs"}
        assert pair.ids(pair.hosts[1]) != before


def test_an_image_that_nobody_can_look_at_is_no_drift(pair: Docked) -> None:
    pair.is_pinned = False
    pair.write()
    start(pair)
    host, decode = pair.hosts[1], names(pair)[1]
    host.exec("docker", "tag", pair.image, "kept:1")
    host.exec("docker", "rmi", TAG)
    try:
        assert pair.states()[decode] == "runs"
        assert "already so" in pair.run("serve.start", "--role", "decode").stdout
    finally:
        host.exec("docker", "tag", pair.image, TAG)


def test_a_pinned_worker_stays_as_written_when_the_tag_moves(pair: Docked) -> None:
    start(pair)
    with moved(pair, pair.hosts[1]):
        assert pair.states()[names(pair)[1]] == "runs"


def drifts(made: Docked) -> list[list[str]]:
    """How each worker differs from what it should be, as `serve.status` says."""
    done = made.run("serve.status", "--json")
    assert done.returncode == 5, said(done)
    return [row["drift"] for row in json.loads(done.stdout.splitlines()[-1])["workers"]]


def test_workers_of_different_builds_are_told_apart_between_hosts(pair: Docked) -> None:
    pair.is_pinned = False
    pair.write()
    prefill, decode = names(pair)
    with moved(pair, *pair.hosts[:2]):
        start(pair, "--accept", "pair-image")
        unknown = [
            [f"runs build 0, {decode} another one, 1"], [f"runs build 1, {prefill} another one, 0"],
        ]  # fmt: skip
        assert drifts(pair) == unknown
        folder = pair.folder / "state/images/standin"
        folder.mkdir(parents=True)
        try:
            (folder / "20260101T000000Z.json").write_text("cut off")
            assert drifts(pair) == unknown
            (folder / "20260101T000000Z.json").unlink()
            ImageStore(pair.folder / "state").save(built("sha256:1"))
            assert drifts(pair) == [[f"runs build 0, {decode} a newer one, 1"], []]
        finally:
            shutil.rmtree(folder)


def built(context: str) -> Record:
    """Return the record of a build from some inputs."""
    return Record(
        "standin", TAG, "", "", context, {}, "", "", (), "", {}, (), "", "", "", (),
        at="2026-01-01T00:00:00Z",
    )  # fmt: skip


def test_one_role_restarts_alone(pair: Docked) -> None:
    start(pair)
    prefill, decode = pair.ids(pair.hosts[0]), pair.ids(pair.hosts[1])
    done = pair.run("serve.restart", "--role", "decode", "--no-wait")
    assert done.returncode == 0, said(done)
    assert "nothing is served while it restarts" in done.stdout
    assert pair.ids(pair.hosts[0]) == prefill
    assert pair.ids(pair.hosts[1]) != decode


def test_a_worker_that_would_not_be_started_again_is_not_stopped(pair: Docked) -> None:
    start(pair)
    before = pair.ids(pair.hosts[1])
    script = f"/opt/bringup/serve/{NAME}/serve_dynamo_decode.sh"
    pair.hosts[1].exec("sed", "-i", "s/^# Made by/# made by/", script)
    refused = pair.run("serve.restart", "--role", "decode", "--no-wait")
    assert refused.returncode == 4, said(refused)
    assert "bringup provision --host" in refused.stdout
    assert pair.ids(pair.hosts[1]) == before
    assert pair.states()[names(pair)[1]] == "runs"


def test_a_decode_host_is_added_and_removed_while_the_others_run(pair: Docked) -> None:
    start(pair)
    third = pair.hosts[2]
    before = pair.ids(pair.hosts[1])
    both = f"h[{pair.hosts[1].name[1:]}-{third.name[1:]}]"
    pair.write({**pair.roles, "decode": {"mode": "decode", "hosts": both}})
    start(pair)
    assert pair.states()[f"{third.name}/decode"] == "runs"
    assert pair.ids(pair.hosts[1]) == before
    pair.write({**pair.roles, "decode": {"mode": "decode", "hosts": pair.hosts[1].name}})
    cleared = pair.run("serve.stop", "--host", third.name)
    assert cleared.returncode == 0, said(cleared)
    assert pair.ids(third) == []
    assert pair.ids(pair.hosts[1]) == before


def test_a_foreign_container_is_never_touched(pair: Docked) -> None:
    host = pair.hosts[1]
    host.exec("docker", "run", "-d", "--name", f"{NAME}-decode", pair.image, "/bin/sh", "-c",
              "while :; do sleep 1; done")  # fmt: skip
    before = pair.ids(host)
    for verb in ("serve.start", "serve.stop"):
        refused = pair.run(verb, "--role", "decode")
        assert refused.returncode == 4, said(refused)
        assert "is not ours" in refused.stdout
    assert pair.ids(host) == before
    assert pair.states()[names(pair)[1]] == "foreign"


def test_a_port_that_somebody_holds_is_named_with_its_owner(pair: Docked) -> None:
    host = pair.hosts[1]
    listener = "import socket,time; s=socket.create_server(('', 30000)); time.sleep(600)"
    host.exec("sh", "-c", f'setsid python3 -c "{listener}" </dev/null >/dev/null 2>&1 &')
    try:
        until(lambda: b":7530" in host.exec("cat", "/proc/net/tcp").stdout, "the port is taken")
        refused = pair.run("serve.start", "--role", "decode")
    finally:
        host.exec("pkill", "-f", "30000", check=False)
    assert refused.returncode == 4
    assert "NET-05" in refused.stdout
    assert "python3" in refused.stdout
    assert pair.ids(host) == []


def test_a_process_on_the_gpus_is_named_with_its_owner_and_refuses_the_start(
    pair: Docked,
) -> None:
    host = pair.hosts[1]
    host.exec("mknod", "-m", "666", "/dev/nvidia0", "c", "1", "3")
    holder = "setsid setpriv --reuid games sleep 900 3</dev/nvidia0 >/dev/null 2>&1 & echo $!"
    pid = host.text("sh", "-c", holder).strip()
    try:
        until(lambda: host.text("stat", "-c", "%U", f"/proc/{pid}").strip() == "games", "it runs")
        refused = pair.run("serve.start", "--role", "decode")
        assert refused.returncode == 4, said(refused)
        assert "SLU-04" in refused.stdout
        assert f"sleep ({pid}) of user games" in " ".join(refused.stdout.split())
        assert pair.ids(host) == []
        start(pair, "--role", "decode", "--accept", "SLU-04")
        assert pair.states()["h2/decode"] == "runs"
    finally:
        host.exec("sh", "-c", f"kill {pid}; rm /dev/nvidia0", check=False)


def test_scripts_of_another_day_are_not_run(pair: Docked) -> None:
    script = f"/opt/bringup/serve/{NAME}/serve_dynamo_decode.sh"
    pair.hosts[1].exec("sed", "-i", "s/^# Made by/# made by/", script)
    refused = pair.run("serve.start", "--role", "decode")
    assert refused.returncode == 4
    assert "bringup provision --host" in refused.stdout
    assert pair.ids(pair.hosts[1]) == []


def test_an_image_that_is_not_there_is_a_refusal(pair: Docked) -> None:
    pair.hosts[1].exec("docker", "tag", pair.image, "kept:1")
    pair.hosts[1].exec("docker", "rmi", "standin:1")
    try:
        refused = pair.run("serve.start", "--role", "decode")
    finally:
        pair.hosts[1].exec("docker", "tag", pair.image, "standin:1")
    assert refused.returncode == 4, said(refused)
    assert "image standin:1 is not on this host" in refused.stderr


def test_a_worker_that_ends_at_once_is_named_with_its_cause(pair: Docked) -> None:
    host = pair.hosts[1]
    line = "__main__.py: error: unrecognized arguments: --odd 3"
    host.exec("sh", "-c", f"echo '{line}' >/model/say; echo 2 >/model/exit")
    started = pair.run("serve.start")
    assert started.returncode == 1, said(started)
    assert "cannot keep toy-decode running: it ended with exit code 2" in started.stderr
    assert "The engine does not know a flag" in started.stderr
    assert "bringup explain --odd" in started.stderr
    done = pair.run("ready", "--json", "--every", "0.5")
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["who"], last["why"]) == (f"{host.name}/decode", "it ended with exit code 2")
    assert last["causes"][0]["id"] == "unknown-flag"


def test_docker_kill_during_the_wait_is_told_as_that(pair: Docked) -> None:
    start(pair)
    waiting = pair.begin("ready", "--json", "--every", "0.5")
    key = names(pair)[1]
    waiting.says(f'"host": "{key}", "stage": "engine"')
    pair.hosts[1].exec("docker", "kill", f"{NAME}-decode")
    assert waiting.ends() == 1, waiting.tail
    last = json.loads(waiting.log.splitlines()[-1])
    assert (last["who"], [c["id"] for c in last["causes"]]) == (key, ["killed-from-outside"])
    assert pair.states()[key] == "exited (137)"
    start(pair)
    assert pair.states()[key] == "runs"


def diagnosed(made: Docked) -> dict[str, dict[str, Any]]:
    """What `diagnose --deployment` says, by worker."""
    done = made.run("diagnose", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [row for row in found if row["schema"] == "bringup.diagnosis/1"]
    assert rows, said(done)
    return {row["source"]: row for row in rows}


def causes(row: dict[str, Any]) -> list[str]:
    return [cause["id"] for cause in row["causes"]]


def test_a_loop_of_restarts_is_told_with_its_cause(pair: Docked) -> None:
    host, key = pair.hosts[1], names(pair)[1]
    line = "__main__.py: error: unrecognized arguments: --odd 3"
    pair.write(restart="unless-stopped")
    host.exec("sh", "-c", f"echo '{line}' >/model/say; echo 2 >/model/exit")
    pair.run("serve.start", "--role", "decode")
    counted = ("docker", "inspect", "-f", "{{.RestartCount}}", f"{NAME}-decode")
    until(lambda: int(host.text(*counted)) >= 3, "it was restarted three times")
    done = pair.run("ready", "--json", "--every", "0.5", "--budget", "container=5")
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["who"], causes(last)[0]) == (key, "unknown-flag")
    row = diagnosed(pair)[key]
    assert {"unknown-flag", "restart-loop"} <= set(causes(row))


def test_a_container_without_memory_is_told_apart_from_one_that_was_killed(pair: Docked) -> None:
    host, key = pair.hosts[1], names(pair)[1]
    start(pair, "--role", "decode")
    host.exec("docker", "update", "--memory", "24m", "--memory-swap", "24m", f"{NAME}-decode")
    host.exec("touch", "/model/grow")
    until(lambda: not pair.states()[key].startswith("runs"), "it was ended")
    row = diagnosed(pair)[key]
    assert causes(row)[0] == "container-out-of-memory", row
    assert "exit code 137" in row["stands"]


def test_a_full_disk_under_docker_is_named_when_nothing_can_start(pair: Docked) -> None:
    host = pair.hosts[1]
    host.exec("sh", "-c", "mount -t tmpfs -o size=4k tmpfs /var/lib/docker/containers")
    try:
        failed = pair.run("serve.start", "--role", "decode")
    finally:
        host.exec("umount", "-l", "/var/lib/docker/containers")
    assert failed.returncode == 1, said(failed)
    assert "no space left on device" in failed.stderr
    assert "A disk is full" in failed.stderr
    assert pair.ids(host) == []


def test_workers_that_are_gone_are_told_as_that(pair: Docked) -> None:
    rows = diagnosed(pair)
    assert {causes(rows[key])[0] for key in names(pair)} == {"not-there"}
    assert rows[names(pair)[1]]["causes"][0]["command"].endswith(f"--host {pair.hosts[1].name}")


@pytest.mark.parametrize(("restart", "after"), [("no", "exited"), ("unless-stopped", "runs")])
def test_after_a_reboot_the_truth_is_told_and_a_start_mends_it(
    pair: Docked, restart: str, after: str
) -> None:
    pair.write(restart=restart)
    start(pair)
    host, key = pair.hosts[1], names(pair)[1]
    reboot(host)
    until(lambda: pair.states()[key].startswith(after), f"the worker is {after}")
    start(pair)
    assert pair.states()[key] == "runs"


def reboot(host: FleetHost) -> None:
    """Switch a host off and on again, with its model in place."""
    host.power_off()
    host.power_on()
    host.exec("sh", "-c", "mkdir -p /model && echo '{}' >/model/config.json")


def test_etcd_is_started_first_where_bringup_runs_it(pair: Docked) -> None:
    third = pair.hosts[2]
    pair.services = {
        "etcd": [f"http://{third.address}:2379"], "host": third.name, "etcd_image": pair.image,
    }  # fmt: skip
    pair.write()
    start(pair)
    states = pair.states()
    assert states[f"{third.name}/etcd"] == "runs"
    health = third.text("sh", "-c", f"curl -s http://{third.address}:2379/health")
    assert '"true"' in health
    started = [third.text("docker", "inspect", "-f", "{{.State.StartedAt}}", f"{NAME}-etcd"),
               pair.hosts[0].text("docker", "inspect", "-f", "{{.State.StartedAt}}",
                                  f"{NAME}-prefill")]  # fmt: skip
    assert started == sorted(started)
    kept = pair.run("serve.stop")
    assert kept.returncode == 0, said(kept)
    assert pair.states()[f"{third.name}/etcd"] == "runs"
    assert pair.run("serve.stop", "--services").returncode == 0
    assert pair.states()[f"{third.name}/etcd"] == "not there"


def test_a_dead_external_etcd_refuses_the_start(pair: Docked) -> None:
    pair.services = {"etcd": [f"http://{pair.hosts[2].address}:2379"]}
    pair.write()
    refused = pair.run("serve.start")
    assert refused.returncode == 4, said(refused)
    assert "NET-01" in refused.stdout
    assert set(pair.states().values()) == {"not there"}
    start(pair, "--accept", "NET-01")


def test_a_host_that_slurm_may_use_is_refused_until_it_is_drained(
    pair: Docked, tmp_path: Path
) -> None:
    host = pair.hosts[1]
    _slurm(host, "IDLE")
    try:
        refused = pair.run("serve.start", "--role", "decode")
        assert refused.returncode == 4, said(refused)
        assert "SLU-01" in refused.stdout
        assert "bringup slurm.take --host" in refused.stdout
        _slurm(host, "IDLE+DRAIN")
        start(pair, "--role", "decode")
    finally:
        host.exec("rm", "-f", "/usr/bin/scontrol", "/usr/bin/squeue", "/etc/slurm/slurm.conf")


def _slurm(host: FleetHost, state: str) -> None:
    """Put Slurm's commands on a host, with a node in a state and no job."""
    node = f"NodeName={host.name} Arch=x86_64 CPUAlloc=0 CPUTot=2 State={state} Gres=gpu:8"
    scontrol = f"#!/bin/sh\necho '{node}'\n"
    host.exec("mkdir", "-p", "/etc/slurm")
    for path, text in (
        ("/usr/bin/scontrol", scontrol),
        ("/usr/bin/squeue", "#!/bin/sh\nexit 0\n"),
        ("/etc/slurm/slurm.conf", "ClusterName=x\n"),
    ):
        host.exec("tee", path, stdin=text.encode())
        host.exec("chmod", "755", path)
