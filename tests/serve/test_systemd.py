"""Workers that systemd runs: a host with systemd as its first process and a real docker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.dynamo.processes import until
from tests.fleet.yard import FleetHost, Yard

from .docked import ENGINE, NAME, Docked, docked
from .test_docker import said, start

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("serve-systemd")]

UNIT = f"bringup-{NAME}-decode.service"


@pytest.fixture(scope="module")
def alone(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docked]:
    with docked(tmp_path_factory.mktemp("units"), yard, 1, init="systemd") as made:
        yield made


@pytest.fixture
def unit(alone: Docked) -> Docked:
    """One decode worker, run by its unit; written and not started."""
    made, host = alone, alone.hosts[0]
    host.exec("systemctl", "disable", "--quiet", "--now", UNIT, check=False)
    host.exec("systemctl", "reset-failed", UNIT, check=False)
    made.clear()
    made.knobs = {}
    host.exec("sh", "-c", "mkdir -p /model && echo '{}' >/model/config.json")
    made.write({"decode": {"mode": "aggregated", "hosts": host.name}}, service=True)
    return made


def host_of(made: Docked) -> FleetHost:
    return made.hosts[0]


def state(made: Docked) -> str:
    (found,) = made.states().values()
    return found


def systemd(made: Docked) -> tuple[str, str]:
    """Whether the unit is active, and whether it is enabled."""
    words = ("is-active", "is-enabled")
    said = [host_of(made).exec("systemctl", word, UNIT, check=False).stdout for word in words]
    return said[0].decode().strip(), said[1].decode().strip()


def test_a_unit_is_enabled_and_started_once_and_stopped_for_good(unit: Docked) -> None:
    start(unit)
    assert (state(unit), systemd(unit)) == ("runs", ("active", "enabled"))
    before = unit.ids(host_of(unit))
    again = unit.run("serve.start")
    assert again.returncode == 0, said(again)
    assert again.stdout.count("already so") == 2
    assert unit.ids(host_of(unit)) == before
    assert "server_args=ServerArgs" in unit.run("serve.logs").stdout
    stopped = unit.run("serve.stop")
    assert stopped.returncode == 0, said(stopped)
    assert (state(unit), systemd(unit)) == ("not there", ("inactive", "disabled"))
    assert "server_args=ServerArgs" in unit.run("serve.logs").stdout


def test_a_unit_with_other_settings_is_shown_and_kept_until_told(unit: Docked) -> None:
    start(unit)
    before = unit.ids(host_of(unit))
    unit.write(page_size=64)
    assert state(unit) == "drifted"
    refused = unit.run("serve.start")
    assert refused.returncode == 4, said(refused)
    assert "+ --page-size 64" in refused.stdout
    assert unit.ids(host_of(unit)) == before
    start(unit, "--recreate")
    assert (state(unit), systemd(unit)) == ("runs", ("active", "enabled"))
    assert unit.ids(host_of(unit)) != before


def test_a_unit_comes_back_with_its_host_unless_it_was_stopped(unit: Docked) -> None:
    start(unit)
    reboot(unit)
    until(lambda: state(unit) == "runs", "the worker is back")
    assert unit.run("serve.stop").returncode == 0
    reboot(unit)
    assert (state(unit), systemd(unit)) == ("not there", ("inactive", "disabled"))


def reboot(made: Docked) -> None:
    host = host_of(made)
    host.power_off()
    host.power_on()


def test_a_worker_that_ends_is_told_with_its_cause(unit: Docked) -> None:
    line = "__main__.py: error: unrecognized arguments: --odd 3"
    host_of(unit).exec("sh", "-c", f"echo '{line}' >/model/say; echo 2 >/model/exit")
    started = unit.run("serve.start")
    assert started.returncode == 1, said(started)
    assert "cannot keep toy-decode running: it ended with exit code 2" in started.stderr
    assert "bringup explain --odd" in started.stderr


def test_a_script_that_refuses_is_a_refusal_with_its_reason(unit: Docked) -> None:
    host_of(unit).exec("rm", "/model/config.json")
    refused = unit.run("serve.start")
    assert refused.returncode == 4, said(refused)
    assert "no /model/config.json" in refused.stderr
    assert "bring the model back" in refused.stderr
    assert systemd(unit)[0] in ("inactive", "failed")


def test_a_unit_that_fails_without_a_container_is_told_by_its_journal(unit: Docked) -> None:
    script = f"/opt/bringup/serve/{NAME}/serve_dynamo.sh"
    start(unit)
    assert unit.run("serve.stop").returncode == 0
    odd = "#!/bin/sh\necho cannot find the flux >&2\nexit 3\n"
    host_of(unit).exec("tee", script, stdin=odd.encode())
    host_of(unit).exec("systemctl", "start", "--no-block", UNIT)
    until(lambda: state(unit).startswith("restarting"), "the unit gives up")
    assert "cannot find the flux" in unit.run("serve.logs").stdout
    done = unit.run("ready", "--json", "--every", "0.5", "--budget", "container=2")
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["verdict"], last["stage"]) == ("over", "container")
    assert [cause["id"] for cause in last["causes"]] == ["unit-failed"]
    assert any("flux" in line for line in last["said"]), last["said"]


def test_a_unit_is_cleared_from_a_host_that_plays_no_role_any_more(unit: Docked) -> None:
    start(unit)
    name, hosts = host_of(unit).name, unit.inventory / "hosts.yml"
    other = {"address": "198.18.255.250", "user": "root"}
    known = yaml.safe_load(hosts.read_text())["hosts"]
    hosts.write_text(yaml.safe_dump({"hosts": {**known, "other": other}}))
    path = unit.inventory / f"deployments/{NAME}.yml"
    path.write_text(path.read_text().replace(f"hosts: {name}", "hosts: other"))
    cleared = unit.run("serve.stop", "--host", name)
    assert cleared.returncode == 0, said(cleared)
    assert unit.ids(host_of(unit)) == []
    assert systemd(unit) == ("inactive", "disabled")


def test_a_unit_runs_a_process_without_a_container(unit: Docked) -> None:
    host = host_of(unit)
    host.exec("mkdir", "-p", "/opt/venv/bin")
    for program in ("python", "python3"):
        host.exec("tee", f"/opt/venv/bin/{program}", stdin=ENGINE.encode())
        host.exec("chmod", "755", f"/opt/venv/bin/{program}")
    unit.in_container = False
    try:
        unit.write(venv="/opt/venv")
        start(unit)
        assert (state(unit), systemd(unit)) == ("runs", ("active", "enabled"))
        assert "server_args=ServerArgs" in unit.run("serve.logs").stdout
        unit.write(page_size=64)
        assert state(unit) == "drifted"
        start(unit, "--recreate")
        assert state(unit) == "runs"
        assert unit.run("serve.stop").returncode == 0
    finally:
        unit.in_container = True
    assert systemd(unit) == ("inactive", "disabled")
