"""Packages against the real apt and dpkg of a host, with a repository of stand-ins."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bringup.core.steps import Run, State
from bringup.steps.package import hold_step, package_step

from ..fleet.yard import FleetHost
from .hands import Shell, act, plan, settle, states

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-packages")]


def shell(host: FleetHost) -> Shell:
    def run(script: str, stdin: bytes = b"") -> tuple[int, str]:
        done = host.exec("sh", "-c", script, check=False, stdin=stdin)
        return done.returncode, (done.stdout + done.stderr).decode()

    return run


def has(host: FleetHost, name: str) -> bool:
    return host.exec("test", "-e", f"/usr/share/stand-in/{name}", check=False).returncode == 0


@contextmanager
def holding_apts_lock(host: FleetHost) -> Iterator[None]:
    """Hold dpkg's lock the way another package manager does, from before the body to its end."""
    program = (
        "import fcntl, sys\nf = open('/var/lib/dpkg/lock-frontend', 'w')\n"
        "fcntl.lockf(f, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()"
    )
    words = ["nsenter", "-t", str(host.pid), "-a", "python3", "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()


def test_an_exact_version_is_installed_and_held_once(host: FleetHost) -> None:
    step = package_step("plain-tool", version="1.0", hold=True)
    assert states(settle([step], shell=shell(host))) == [State.SAME]
    assert host.text("dpkg-query", "-W", "-f", "${Version}", "plain-tool") == "1.0-1"
    assert "plain-tool" in host.text("apt-mark", "showhold")


def test_a_held_package_moves_to_the_version_that_is_wanted_and_stays_held(host: FleetHost) -> None:
    settle([package_step("plain-tool", version="1.0", hold=True)], shell=shell(host))
    step = package_step("plain-tool", version="1.1", hold=True)
    assert plan([step], shell=shell(host))[0].observation.found == "installed 1.0-1 held"
    assert states(settle([step], shell=shell(host))) == [State.SAME]


def test_the_plan_names_what_comes_along(host: FleetHost) -> None:
    (planned,) = plan([package_step("with-part")], shell=shell(host))
    assert planned.observation.found == "absent"
    assert planned.observation.detail.split() == ["its-part", "with-part"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wants-driver", "would bring a driver or kernel: nvidia-driver-999"),
        ("no-such-package", "no repository of this host offers no-such-package"),
    ],
)
def test_a_driver_or_nothing_is_never_installed(host: FleetHost, name: str, said: str) -> None:
    (planned,) = plan([package_step(name)], shell=shell(host))
    code, text = act(planned, shell=shell(host))
    assert (code, said in text) == (3, True), text
    assert not has(host, name)


def test_a_package_that_would_remove_another_is_refused(host: FleetHost) -> None:
    settle([package_step("plain-base")], shell=shell(host))
    (planned,) = plan([package_step("rival")], shell=shell(host))
    code, text = act(planned, shell=shell(host))
    assert (code, "would remove plain-base" in text) == (3, True), text
    assert has(host, "plain-base")


def test_a_lock_of_another_package_manager_is_named_and_the_next_run_completes(
    host: FleetHost,
) -> None:
    step = package_step("late", lock_s=1)
    (planned,) = plan([step], shell=shell(host))
    with holding_apts_lock(host):
        code, text = act(planned, shell=shell(host))
    assert (code, "another package manager is at work" in text) == (3, True), text
    assert not has(host, "late")
    assert states(settle([step], shell=shell(host))) == [State.SAME]


def test_an_interrupted_dpkg_is_named_and_the_next_run_completes(host: FleetHost) -> None:
    host.exec("dpkg", "--unpack", "/var/lib/stand-in/napper_1.0.deb")
    step = package_step("late-two")
    (planned,) = plan([step], shell=shell(host))
    code, text = act(planned, shell=shell(host))
    assert (code, "finish it first: dpkg --configure -a" in text) == (3, True), text
    host.exec("dpkg", "--configure", "-a")
    assert states(settle([step], shell=shell(host))) == [State.SAME]


def test_a_repository_that_is_down_is_named(host: FleetHost) -> None:
    host.exec("sh", "-c", "mv /var/lib/stand-in /var/lib/gone; rm -r /var/lib/apt/lists/*")
    try:
        (planned,) = plan([package_step("its-part")], shell=shell(host))
        code, text = act(planned, shell=shell(host))
    finally:
        host.exec("sh", "-c", "mv /var/lib/gone /var/lib/stand-in; apt-get -q update")
    assert code == 3
    assert "no repository of this host offers its-part" in text
    assert "File not found" in text or "Failed to fetch" in text


def test_a_hold_is_seen_and_set(host: FleetHost) -> None:
    settle([package_step("its-part")], shell=shell(host))
    assert states(plan([hold_step("its-part")], shell=shell(host))) == [State.CHANGE]
    assert states(settle([hold_step("its-part")], shell=shell(host))) == [State.SAME]


def test_dnf_is_asked_what_it_would_do_before_it_acts() -> None:
    step = package_step("tool", version="1.0", hold=True, manager="dnf")
    (action,) = step.actions
    assert isinstance(action, Run)
    text = str(action.words[2])
    assert text.index("--assumeno") < text.index("would remove") < text.index("get -y")
    assert "rpm -q" in step.observe
