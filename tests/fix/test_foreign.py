"""A real docker under a real systemd: what is foreign there survives a fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..fleet.yard import FleetHost, Yard
from .hardware import clothe, driver_only
from .test_provision_fix import desk_for, statuses

pytestmark = [pytest.mark.root, pytest.mark.slow]

LIMIT = ("--fix-only", "CTR-09", "--fix-level", "service")
IMAGE = r"""
d=$(mktemp -d); mkdir "$d/bin"; cp /bin/busybox "$d/bin/"
tar -C "$d" -c . | docker import - box >/dev/null
"""


def started(host: FleetHost) -> str:
    return host.text(
        "docker", "inspect", "-f", "{{.State.Running}} {{.State.StartedAt}}", "trainer"
    )


def test_a_foreign_container_and_foreign_keys_survive_the_limit_of_logs(
    yard: Yard, tmp_path: Path
) -> None:
    with yard.hosts(1, docker=True, init="systemd") as (host,):
        host.exec("tee", "/etc/docker/daemon.json", stdin=b'{"debug": true}\n')
        host.exec("systemctl", "restart", "docker")
        host.await_docker()
        host.exec("sh", "-c", IMAGE)
        host.exec("docker", "run", "-d", "--name", "trainer", "--network", "none", "box",
                  "/bin/busybox", "sleep", "100000")  # fmt: skip
        desk, before = desk_for(tmp_path, host, yard), started(host)

        held = desk.run("provision", *LIMIT)
        assert "a restart of docker would end trainer" in held.stdout, held.stdout + held.stderr
        assert started(host) == before
        assert host.text("cat", "/etc/docker/daemon.json") == '{"debug": true}\n'

        host.exec("docker", "rm", "-f", "trainer")
        done = desk.objects("provision", *LIMIT)
        assert statuses(done)["CTR-09"] == "pass"
        kept = json.loads(host.text("cat", "/etc/docker/daemon.json"))
        assert kept["debug"] is True
        assert kept["log-opts"]["max-size"] == "100m"


def test_a_runtime_comes_and_goes_under_a_running_container_without_a_restart(
    yard: Yard, tmp_path: Path
) -> None:
    with yard.hosts(1, docker=True, init="systemd") as (host,):
        host.exec("sh", "-c", IMAGE)
        host.exec("docker", "run", "-d", "--name", "trainer", "--network", "none", "box",
                  "/bin/busybox", "sleep", "100000")  # fmt: skip
        clothe(host, driver_only())
        for name in ("nvidia-ctk", "nvidia-container-runtime"):
            host.exec("install", "-m", "755", "/dev/stdin", f"/usr/bin/{name}", stdin=CTK)
        desk, before = desk_for(tmp_path, host, yard, gpu_count=8, kind="b300"), started(host)

        found = statuses(desk.objects("provision", "--fix-only", "CTR-03"))
        assert found["CTR-03"] == "pass"
        assert "nvidia" in host.text("docker", "info", "-f", "{{.Runtimes}}")
        assert started(host) == before

        kept = desk.run("undo")
        assert "containers run: trainer" in kept.stdout, kept.stdout + kept.stderr
        assert started(host) == before


CTK = b"#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.18.0'\n"
