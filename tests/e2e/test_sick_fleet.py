"""A fleet of which a third is sick in every way: told apart, and nobody waits for them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import pytest
import yaml

from bringup.lab import keys
from bringup.lab.describe import describe
from bringup.lab.fleet import down, up
from bringup.lab.hardware import Faults, Hardware, Saying

from .conftest import ROOT, Lab

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sick")]

PATIENCE_S = 240.0

# All hosts are one process on this machine, which may be slow to answer for the well ones too: only
# where silence is the sickness, it is given up on soon.
WELL_LIMITS = {"connect_s": 60, "keepalive_s": 15}
SICK_LIMITS = {"connect_s": 15, "keepalive_s": 2}


@dataclass(frozen=True)
class Sickness:
    """How a host is sick, and what is said of it when it is looked at, or changed."""

    faults: Faults = field(default_factory=Faults)
    unseen: str = ""  # why nobody could look
    finding: str = ""  # what a look finds
    failed: str = ""  # why it could not be changed


def an_hour_ahead() -> Saying:
    return Saying(f"{time.time() + 3600:.3f}")


SICK = {
    "plain-60": Sickness(Faults(login="refuse"), "connection refused"),
    "plain-61": Sickness(Faults(login="refuse"), "connection refused"),
    "plain-62": Sickness(Faults(login="mute"), "sends no SSH version"),
    "plain-63": Sickness(Faults(login="stall"), "log in.*no answer"),
    "plain-64": Sickness(Faults(freeze_after_bytes=3000), "line dropped .*nothing came"),
    "plain-65": Sickness(Faults(drop_after_bytes=1000), "line dropped"),
    "plain-66": Sickness(Faults(drop_after_bytes=6000), "line dropped"),
    "plain-67": Sickness(Faults(slow_ms=2000)),
    "b300-69": Sickness(Faults(read_only=("/opt",)), failed="cannot write"),
    "plain-70": Sickness(unseen="SHA256:.*the inventory wants"),
    "plain-71": Sickness(Faults(say={"date": an_hour_ahead()}), finding="TIM-02"),
}
SILENT = ("plain-62", "plain-63", "plain-64")
FULL = "b300-68"
if os.geteuid() == 0:  # only root can make a small file system to fill
    SICK[FULL] = Sickness(failed="the disk is full")

STUCK = "b300-72"
"""A host on which a change begins and never ends."""

SERVING = ("b300-04", "b300-07", *(f"b300-{n}" for n in range(40, 44)))
"""Hosts that are well and have a worker to serve; the practice services come with the pair."""

WELL = (*SERVING, *(f"plain-{n}" for n in range(40, 56)))
SMALL = ROOT / "tests/lab/hosts"


@dataclass(frozen=True)
class Ran:
    """One run of the command line over the fleet, machine-readable."""

    code: int
    objects: tuple[dict[str, Any], ...]
    seconds: float

    def of(self, schema: str) -> list[dict[str, Any]]:
        return [one for one in self.objects if one["schema"] == f"bringup.{schema}/1"]


def described() -> tuple[Hardware, ...]:
    faults = {name: sickness.faults for name, sickness in SICK.items()}
    faults[STUCK] = Faults(hang=("tar",))
    names = (*WELL, *SICK, STUCK)
    small = describe((name for name in names if is_small(name)), folder=SMALL)
    hosts = (*describe(name for name in names if not is_small(name)), *small)
    return tuple(replace(host, faults=faults.get(host.name, host.faults)) for host in hosts)


def is_small(name: str) -> bool:
    return name.startswith("plain")


def give_work(inventory: Path) -> None:
    """Give each GPU host a deployment of its own, all short limits, and one another key."""
    pattern = yaml.safe_load((inventory / "deployments/kimi-k3.yml").read_text())
    (inventory / "deployments/kimi-k3.yml").unlink()
    for name in filter(lambda name: not is_small(name), (*WELL, *SICK, STUCK)):
        pattern["roles"] = {"worker": {"mode": "aggregated", "hosts": name}}
        (inventory / f"deployments/{name}.yml").write_text(yaml.safe_dump(pattern))
    path = inventory / "hosts.yml"
    document = yaml.safe_load(path.read_text())
    document["defaults"] |= WELL_LIMITS
    for name in SILENT:
        document["hosts"][name] |= SICK_LIMITS
    other = keys.public(inventory.parent / "keys", "host-b300-40")
    document["hosts"]["plain-70"]["host_key"] = keys.fingerprint(other)
    path.write_text(yaml.safe_dump(document))


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The fleet of this module, a third of it sick."""
    folder = tmp_path_factory.mktemp("sick") / "lab"
    up(folder, descriptions=described())
    give_work(folder / "inventory")
    lab = Lab(folder)
    with ExitStack() as stack:
        stack.callback(down, folder, remove=True)
        if FULL in SICK:
            stack.enter_context(full_disk(lab.root(FULL) / "opt/bringup"))
        yield lab


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Put a file system of one page below a folder; a page is too small for any script."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(folder)], check=True)
    try:
        (folder / "all").write_bytes(b"x" * 4096)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def ran(lab: Lab, verb: str, *words: str) -> Ran:
    began = time.monotonic()
    done = lab.run(verb, "--json", *words, seconds=900)
    objects = tuple(json.loads(line) for line in done.stdout.splitlines())
    return Ran(done.returncode, objects, time.monotonic() - began)


ALL = ("--host", ",".join((*WELL, *SICK)))


@pytest.fixture(scope="module")
def probed(sick: Lab) -> Ran:
    return ran(sick, "probe", *ALL)


def rows(run: Ran) -> dict[str, dict[str, Any]]:
    """Return each host's object of a probe; deployments as a whole left out."""
    hosts = [one["hosts"][0] for one in run.of("probe")]
    return {host["host"]: host for host in hosts if host["facts"] or host["error"]}


def test_the_fleet_is_large_and_a_third_of_it_is_sick() -> None:
    assert len(WELL) + len(SICK) >= 30
    assert len(SICK) * 3 >= len(WELL) + len(SICK)


def test_a_look_gives_one_object_a_host_and_the_gravest_exit_code(probed: Ran) -> None:
    assert rows(probed).keys() == {*WELL, *SICK}
    assert probed.code == 3
    (summary,) = probed.of("summary")
    assert sum(summary["counts"].values()) == len(WELL) + len(SICK)
    assert summary["exit"] == 3


def test_a_look_at_a_host_that_is_well_is_not_spoiled_by_the_sick(probed: Ran) -> None:
    for name in WELL:
        assert rows(probed)[name]["error"] is None
        assert rows(probed)[name]["facts"]["Clock"]["state"] == "known"


@pytest.mark.parametrize("name", sorted(SICK))
def test_a_look_tells_each_sick_host_as_what_it_is(probed: Ran, name: str) -> None:
    row, sickness = rows(probed)[name], SICK[name]
    if sickness.unseen:
        assert re.search(sickness.unseen, row["error"]["message"]), row["error"]
        assert row["error"]["remedy"]
        return
    assert row["error"] is None
    levels = {finding["id"]: finding["level"] for finding in row["findings"]}
    if sickness.finding:
        assert levels[sickness.finding] in ("block", "warn"), levels


def test_hosts_that_are_well_are_told_before_a_mute_one_runs_out_of_time(probed: Ran) -> None:
    order = [one["hosts"][0]["host"] for one in probed.of("probe")]
    told = [name for name in WELL if order.index(name) < order.index("plain-62")]
    assert len(told) >= len(WELL) / 2, order


@pytest.fixture(scope="module")
def provisioned(sick: Lab) -> tuple[Ran, Ran]:
    """The first and the second run over the whole fleet."""
    return ran(sick, "provision", *ALL), ran(sick, "provision", *ALL, "--stats")


def test_the_first_run_changes_every_host_that_it_can(provisioned: tuple[Ran, Ran]) -> None:
    ended = {one["host"]: one for one in provisioned[0].of("provision")}
    assert ended.keys() == {*WELL, *SICK}
    assert {name: ended[name]["exit"] for name in SERVING} == dict.fromkeys(SERVING, 0)
    assert all(ended[name]["receipt"] for name in SERVING)
    for name, sickness in SICK.items():
        wrong = sickness.unseen or sickness.failed
        assert re.search(wrong, ended[name]["error"] or ""), (name, ended[name]["error"])
    assert provisioned[0].code == 1


def test_the_second_run_is_one_connection_and_two_commands_a_host(
    provisioned: tuple[Ran, Ran],
) -> None:
    (stats,) = provisioned[1].of("stats")
    for name in WELL:  # a host that is to serve nothing is only looked at
        cost = stats["hosts"][name]
        assert (cost["connections"], cost["commands"]) == (1, 2 if name in SERVING else 1)


def test_people_get_one_screen_though_a_third_is_sick(
    sick: Lab, provisioned: tuple[Ran, Ran]
) -> None:
    hosts = ",".join((*WELL, "plain-60", "plain-61", "b300-68", "b300-69", "plain-70"))
    text = sick.run("provision", "--host", hosts, "--no-diff").stdout
    plan = text.partition("\nplan")[2]
    assert len(plan.splitlines()) < 24, plan
    assert f"{len(SERVING)} with nothing to change" in plan


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


def running_below(folder: Path) -> list[str]:
    """Return the command lines of processes that work in a folder, the server left out."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            inside = (process / "cwd").readlink().is_relative_to(folder)
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if inside and words:
            found.append(words)
    return found


def threads_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"Threads:\s+(\d+)", text)[0])


def megabytes_of(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", text)[0]) / 1024


AT_ONCE_S = 30
"""A quiet machine takes half a second; waiting for the host that hangs takes minutes."""


@contextmanager
def begun(words: list[str], stream: TextIO) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; it is killed at the end, if it still runs."""
    with subprocess.Popen(words, cwd=ROOT, stdout=stream, stderr=stream) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_stopped_run_ends_at_once_and_leaves_nothing_and_the_next_goes_on(
    sick: Lab, provisioned: tuple[Ran, Ran], tmp_path: Path
) -> None:
    (script,) = sick.root("b300-40").rglob("serve_*.sh")
    script.write_text("old\n")
    hosts = ",".join(("b300-40", STUCK, "plain-62", "plain-63"))
    log = tmp_path / "log"
    home = sick.folder / "hosts" / STUCK
    words = sick.words("provision", "--host", hosts)
    with log.open("w") as stream, begun(words, stream) as process:
        until(lambda: any("sleep 86400" in one for one in running_below(home)), "the change begins")
        until(lambda: script.read_text() != "old\n", "the host that is well is changed")
        assert threads_of(process.pid) < 64
        assert megabytes_of(process.pid) < 300
        process.send_signal(signal.SIGINT)
        assert process.wait(AT_ONCE_S) == 130
    assert "run the same command again" in log.read_text()
    until(lambda: not running_below(home), "nothing is left running")
    assert not [path for path in sick.root(STUCK).rglob("*bringup*lock*") if path.exists()]
    done = sick.run("provision", "--host", "b300-40")
    assert done.returncode == 0
    assert "1 with nothing to change" in done.stdout
