"""Services under a real systemd."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bringup.core.receipt import Done, Outcome
from bringup.core.steps import State
from bringup.steps.back import back, in_order
from bringup.steps.login import limits_step, member_step
from bringup.steps.mount import Mount, mount_steps
from bringup.steps.service import drop_in, restart_step, service_step

from ..fleet.yard import FleetHost
from .hands import act, plan, settle, states
from .test_packages import shell

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-services")]

UNIT = "[Service]\nExecStart=/bin/sleep 100000\n[Install]\nWantedBy=multi-user.target\n"


def unit(host: FleetHost, name: str, text: str = UNIT) -> str:
    host.exec("tee", f"/etc/systemd/system/{name}.service", stdin=text.encode())
    host.exec("systemctl", "daemon-reload")
    return name


def test_a_service_is_enabled_and_started_once(host: FleetHost) -> None:
    step = service_step(unit(host, "nap"))
    assert plan([step], shell=shell(host))[0].observation.found == "disabled inactive"
    assert states(settle([step], shell=shell(host))) == [State.SAME]


def test_a_masked_service_is_left_to_its_owner(host: FleetHost) -> None:
    name = "siesta"
    host.exec("systemctl", "mask", name)
    (planned,) = plan([service_step(name)], shell=shell(host))
    code, text = act(planned, shell=shell(host))
    assert (code, "somebody wants it off" in text) == (3, True)


def test_a_service_that_does_not_start_shows_its_status(host: FleetHost) -> None:
    name = unit(host, "broken", UNIT.replace("/bin/sleep 100000", "/bin/no-such-program"))
    (planned,) = plan([service_step(name)], shell=shell(host))
    code, text = act(planned, shell=shell(host))
    assert code != 0
    assert "broken.service" in text


def test_a_drop_in_restarts_its_service_and_then_nothing(host: FleetHost) -> None:
    name = unit(host, "doze")
    settle([service_step(name)], shell=shell(host))
    write = drop_in(name, "[Service]\nLimitNOFILE=1048576\n")
    path = write.id.removeprefix("file:")
    steps = [write, restart_step(name, files=[path], follows=[write.id])]
    assert [p.is_change for p in plan(steps, shell=shell(host))] == [True, True]
    assert states(settle(steps, shell=shell(host))) == [State.SAME, State.SAME]
    assert host.text("systemctl", "show", "-p", "LimitNOFILE", "--value", name).strip() == "1048576"


def test_a_service_older_than_its_file_is_restarted_though_the_file_is_as_wanted(
    host: FleetHost,
) -> None:
    name = unit(host, "slumber")
    settle([service_step(name)], shell=shell(host))
    late = (
        "for _ in $(seq 100); do touch /etc/later; "
        'age=$(ps -o etimes= -p "$(systemctl show -p MainPID --value slumber)"); '
        '[ "$age" -lt 2 ] || exit 0; sleep 0.1; done; exit 1'
    )
    host.exec("sh", "-c", late)
    (planned,) = plan([restart_step(name, files=["/etc/later"])], shell=shell(host))
    assert planned.observation.found == "older than /etc/later"


def test_a_user_is_put_into_a_group_and_keeps_the_others(host: FleetHost) -> None:
    host.exec("groupadd", "-f", "engine-users")
    host.exec("usermod", "-aG", "audio", "operator")
    assert states(settle([member_step("operator", "engine-users")], shell=shell(host))) == [
        State.SAME
    ]
    assert {"audio", "engine-users"} <= set(host.text("id", "-nG", "operator").split())


def test_a_foreign_line_in_limits_conf_survives(host: FleetHost) -> None:
    host.exec("sh", "-c", "echo '* soft nofile 4321 # ours' >>/etc/security/limits.conf")
    settle([limits_step(("* - memlock unlimited",))], shell=shell(host))
    assert "nofile 4321 # ours" in host.text("cat", "/etc/security/limits.conf")


def test_a_mount_goes_back_with_its_line_and_folder_once_nobody_works_in_it(
    host: FleetHost,
) -> None:
    at, table = "/mnt/own", host.text("cat", "/etc/fstab")
    steps = mount_steps(Mount("tmpfs", at, "tmpfs", "size=1m"))
    before = plan(steps, shell=shell(host))
    assert states(settle(steps, shell=shell(host))) == [State.SAME] * 3
    done = [
        Done(p.step.id, Outcome.CHANGED, found=p.observation.found, wanted=p.step.wanted,
             before=p.observation.detail)
        for p in before
    ]  # fmt: skip
    ways = [way.step for way in in_order(back(one) for one in reversed(done)) if way.step]
    with busy_in(host, at):
        first = plan(ways, shell=shell(host))[0].observation
    assert (first.state, first.why) == (State.SAME, "somebody works in it")
    assert states(settle(ways, shell=shell(host))) == [State.SAME] * 3
    assert host.text("cat", "/etc/fstab") == table
    assert host.exec("test", "-e", at, check=False).returncode == 1


@contextmanager
def busy_in(host: FleetHost, folder: str) -> Iterator[None]:
    """Keep a process in a folder."""
    stay = f"cd {folder}; echo in; read -r _"
    words = ["nsenter", "-t", str(host.pid), "-a", "-r", "sh", "-c", stay]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        yield
        process.communicate()
