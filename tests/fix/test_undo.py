"""Undo leaves what others need, restarts what read a file, and refuses what somebody changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bringup.core.errors import StalePlan
from bringup.core.event import Event

from ..fleet.yard import FleetHost, Yard
from .bench import Bench
from .faults import ENGINE, TOOLKIT
from .test_provision_fix import desk_for

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-hosts")]

UVM = "/sys/module/nvidia_uvm"
LIMITS = "/etc/docker/daemon.json"
NO_LIMITS = f"{TOOLKIT}rm -rf /etc/docker /etc/cdi; systemctl restart docker"
NO_UVM = "[ ! -d /sys/module/nvidia_uvm ] || modprobe -r nvidia_uvm; rm -f /dev/nvidia-uvm"


@pytest.fixture
def bench(gpu_host: FleetHost, yard: Yard, tmp_path: Path) -> Bench:
    return Bench(desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300"))


def left(bench: Bench, *, check: bool = False) -> dict[str, str]:
    undone = bench.undo(check=check)
    assert undone.ended.error is None, undone.ended.error
    return {way.id: way.why_not for way in undone.left}


def started(host: FleetHost) -> str:
    return host.text("systemctl", "show", "-p", "ExecMainStartTimestampMonotonic", "docker")


def test_a_module_goes_with_undo_where_nobody_uses_it(bench: Bench, gpu_host: FleetHost) -> None:
    gpu_host.exec("sh", "-c", NO_UVM)
    bench.provision("GPU-07")
    gpu_host.exec("sh", "-c", f"echo 1 >{UVM}/refcnt")
    assert left(bench, check=True)["module:nvidia_uvm"] == "the module is in use"
    assert (
        gpu_host.exec("test", "-e", "/etc/modules-load.d/bringup-nvidia_uvm.conf").returncode == 0
    )
    gpu_host.exec("sh", "-c", f"echo 0 >{UVM}/refcnt")
    assert left(bench) == {}
    assert gpu_host.exec("test", "-d", UVM, check=False).returncode == 1


def test_a_service_reads_its_old_file_again_after_undo(bench: Bench, gpu_host: FleetHost) -> None:
    gpu_host.exec("sh", "-c", NO_LIMITS)
    bench.provision("CTR-09")
    assert "max-size" in gpu_host.text("cat", "/run/docker.config")
    assert left(bench) == {}
    assert gpu_host.exec("test", "-e", LIMITS, check=False).returncode == 1
    assert gpu_host.text("cat", "/run/docker.config") == "{}\n"


def test_a_container_that_runs_keeps_docker_as_it_is(bench: Bench, gpu_host: FleetHost) -> None:
    gpu_host.exec("sh", "-c", NO_LIMITS)
    bench.provision("CTR-09")
    gpu_host.exec("sh", "-c", "echo trainer >/run/docker.containers")
    before = started(gpu_host)
    stays = left(bench)
    gpu_host.exec("rm", "/run/docker.containers")
    assert "containers run: trainer" in stays["restart:docker"]
    assert started(gpu_host) == before


def test_undo_of_an_engine_under_a_container_keeps_the_engine(
    bench: Bench, gpu_host: FleetHost
) -> None:
    gpu_host.exec("sh", "-c", f"{ENGINE}systemctl disable -q --now docker")
    bench.provision("CTR-01")
    gpu_host.exec("sh", "-c", "echo trainer >/run/docker.containers")
    stays = left(bench)
    gpu_host.exec("rm", "/run/docker.containers")
    assert "containers run: trainer" in stays["service:docker"]
    assert gpu_host.text("systemctl", "is-active", "docker") == "active\n"


def test_a_refusal_names_the_file_and_both_digests(bench: Bench, gpu_host: FleetHost) -> None:
    gpu_host.exec("sh", "-c", NO_LIMITS)
    bench.provision("CTR-09")
    ours = hashlib.sha256(gpu_host.exec("cat", LIMITS).stdout).hexdigest()
    gpu_host.exec("tee", LIMITS, stdin=b"{}")
    error = bench.undo().ended.error
    assert isinstance(error, StalePlan)
    theirs = hashlib.sha256(b"{}").hexdigest()
    assert error.said == (
        f"file:{LIMITS}: left as file 644 root:root {ours}, now file 644 root:root {theirs}"
    )


def test_a_fix_keeps_an_edit_made_since_its_look(bench: Bench, gpu_host: FleetHost) -> None:
    gpu_host.exec("sh", "-c", NO_LIMITS)
    edits = iter((b'{"debug": true}\n',))

    def meddle(event: Event) -> None:
        if event.stage == "apply" and "daemon.json" in event.text:
            for text in edits:
                gpu_host.exec("install", "-D", "/dev/stdin", LIMITS, stdin=text)

    ended = bench.provision("CTR-09", listen=meddle)
    assert ended.error is None, ended.error
    kept = gpu_host.text("cat", LIMITS)
    assert '"debug": true' in kept
    assert "max-size" in kept
