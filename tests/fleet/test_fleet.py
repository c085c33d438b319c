"""The hosts that other tests stand on are what they claim to be."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from .fixtures import MakeFleet
from .yard import FleetHost, Yard

pytestmark = [pytest.mark.root, pytest.mark.slow]


def ssh(host: FleetHost, yard: Yard, command: str, user: str = "root") -> str:
    done = subprocess.run(
        ["ssh", "-F", "/dev/null", "-i", host.key, "-o", "BatchMode=yes",
         "-o", f"UserKnownHostsFile={yard.known_hosts}", "-l", user, host.address, command],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_each_host_has_name_files_and_processes_of_its_own(fleet: MakeFleet, yard: Yard) -> None:
    one, two = fleet(2)
    assert ssh(one, yard, "hostname; echo mine >/etc/mark; ps -e | wc -l").startswith(one.name)
    assert ssh(two, yard, "hostname; ls /etc/mark 2>/dev/null || echo none") == f"{two.name}\nnone"
    assert not Path("/etc/mark").exists()


def test_users_differ_in_what_sudo_lets_them(fleet: MakeFleet, yard: Yard) -> None:
    (host,) = fleet(1)
    assert ssh(host, yard, "sudo -n id -u", "operator") == "0"
    assert "password" in ssh(host, yard, "sudo -n id -u 2>&1 || true", "guest")


def test_digest_of_a_tree_tells_one_changed_byte(fleet: MakeFleet) -> None:
    (host,) = fleet(1)
    before = host.tree_digest("etc", "usr/local")
    assert host.tree_digest("etc", "usr/local") == before
    host.exec("sh", "-c", "echo x >>/etc/hosts")
    assert host.tree_digest("etc", "usr/local") != before


def test_swap_of_the_machine_is_out_of_reach(fleet: MakeFleet) -> None:
    (host,) = fleet(1)
    assert host.text("cat", "/proc/swaps").count("\n") == 1


def test_cut_cable_silences_a_host_until_mended(fleet: MakeFleet) -> None:
    (host,) = fleet(1)
    host.cut()
    with pytest.raises(OSError, match=r"timed out|No route"):
        socket.create_connection((host.address, host.port), timeout=1.5)
    host.mend()
    host.await_sshd()


def test_crashed_sshd_can_be_started_again(fleet: MakeFleet) -> None:
    (host,) = fleet(1)
    host.kill_sshd()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host.address, host.port), timeout=5)
    host.start_sshd()


def test_host_with_docker_runs_an_engine_of_its_own(fleet: MakeFleet) -> None:
    (host,) = fleet(1, docker=True)
    assert host.text("docker", "info", "-f", "{{.Driver}}").strip() == "overlay2"
    assert host.text("docker", "ps", "-q") == ""


def test_host_with_systemd_starts_and_stops_units(fleet: MakeFleet) -> None:
    (host,) = fleet(1, init="systemd")
    unit = "[Service]\nExecStart=/bin/sleep 1000\n"
    host.exec("tee", "/etc/systemd/system/nap.service", stdin=unit.encode())
    host.exec("systemctl", "daemon-reload")
    host.exec("systemctl", "start", "nap")
    assert host.text("systemctl", "is-active", "nap").strip() == "active"
