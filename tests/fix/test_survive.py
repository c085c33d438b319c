"""`--fix` on a host whose packages are in trouble: told, nothing half done, done next time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from bringup.core.errors import Blocked

from ..fleet.yard import FleetHost, Yard
from .bench import Bench
from .faults import ENGINE, FAULTS, IN_CONTAINER
from .test_provision_fix import desk_for

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-hosts")]

TOOLKIT = "nvidia-container-toolkit"
NO_TOOLKIT = f"{ENGINE}apt-get -q -y purge {TOOLKIT} >/dev/null 2>&1 || :"
OLD_TOOLKIT = (
    f"{ENGINE}apt-mark unhold {TOOLKIT} >/dev/null\n"
    f"apt-get -q -y --allow-downgrades install {TOOLKIT}=1.17.4-1 >/dev/null"
)


@dataclass(frozen=True)
class Trouble:
    """`script` brings it about, `cure` is what the error tells a person to do, or what passes."""

    about: str
    start: str
    script: str
    said: str
    cure: str


TROUBLES = (
    Trouble(
        "dpkg was interrupted", NO_TOOLKIT, "dpkg --unpack /var/lib/stand-in/nvlsm_2025.03-1.deb",
        "finish it first: dpkg --configure -a", "dpkg --configure -a",
    ),
    Trouble(
        "the repository is down", NO_TOOLKIT,
        "mv /var/lib/stand-in /var/lib/away; rm -rf /var/lib/apt/lists/*",
        f"no repository of this host offers {TOOLKIT}", "mv /var/lib/away /var/lib/stand-in",
    ),
    Trouble(
        "the repository loses a package", NO_TOOLKIT,
        f"cd /var/lib/stand-in; mkdir /var/lib/lost; mv {TOOLKIT}_* /var/lib/lost",
        f"apt failed to install {TOOLKIT}", "mv /var/lib/lost/* /var/lib/stand-in",
    ),
    Trouble(
        "a flawed version is held", OLD_TOOLKIT, f"apt-mark hold {TOOLKIT}",
        f"if you know better: apt-mark unhold {TOOLKIT}", f"apt-mark unhold {TOOLKIT}",
    ),
)  # fmt: skip


def packages(host: FleetHost) -> str:
    """Return every package with its state, and what is held."""
    return host.text("sh", "-c", "dpkg-query -W -f '${Package} ${Version} ${Status}\\n'; "
                     "apt-mark showhold")  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.about)
def test_trouble_with_packages_is_told_and_the_next_run_completes(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path, trouble: Trouble
) -> None:
    text = IN_CONTAINER.replace("HOST", gpu_host.name)
    bench = Bench(desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300", deployment=text))
    gpu_host.exec("sh", "-c", trouble.start)
    gpu_host.exec("sh", "-c", trouble.script)
    before = packages(gpu_host)
    try:
        error = bench.provision("CTR-02").error
    finally:
        after = packages(gpu_host)
        gpu_host.exec("sh", "-c", trouble.cure)
    assert error is not None
    assert trouble.said in error.said
    assert after == before, "nothing is half done"
    assert bench.provision("CTR-02").error is None
    assert "1.18.0-1" in gpu_host.text("dpkg-query", "-W", TOOLKIT)


NO_JSON = '{"debug": true, // by ann\n}\n'
STRICT = "#!/bin/sh\n/usr/bin/python3 -m json.tool /etc/docker/daemon.json >/dev/null\n"
"""A daemon that checks its configuration, as docker does from version 23 on."""


def test_a_file_that_cannot_be_edited_holds_up_no_other_fix_and_docker_goes_on(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path
) -> None:
    text = IN_CONTAINER.replace("HOST", gpu_host.name)
    bench = Bench(desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300", deployment=text))
    faults = {f.finding: f for f in FAULTS if f.finding in ("CTR-03", "OS-05", "OS-07")}
    for fault in (faults["CTR-03"], faults["OS-05"], faults["OS-07"]):
        gpu_host.exec("sh", "-c", fault.script)
    gpu_host.exec("rm", "-rf", "/etc/cdi")
    gpu_host.exec("install", "-D", "/dev/stdin", "/etc/docker/daemon.json", stdin=NO_JSON.encode())
    gpu_host.exec("install", "-m", "755", "/dev/stdin", "/usr/bin/dockerd", stdin=STRICT.encode())
    before = started(gpu_host)
    try:
        check = bench.provision("CTR-03", "OS-05", check=True)
        ended = bench.provision("CTR-03", "OS-05", "OS-07")
        kept, after = gpu_host.text("cat", "/etc/docker/daemon.json"), started(gpu_host)
    finally:
        gpu_host.exec("rm", "-rf", "/usr/bin/dockerd", "/etc/docker/daemon.json")
    assert {f.finding.id: f.is_taken for f in check.fixes} == {"CTR-03": False, "OS-05": True}
    assert isinstance(ended.error, Blocked)
    why = {fix.finding.id: fix.withheld for fix in ended.fixes}
    assert why["CTR-03"].startswith("failed: cannot set runtimes in /etc/docker/daemon.json")
    assert why["OS-07"].startswith("failed: cannot restart docker")
    assert "performance" in gpu_host.text("cat", GOVERNOR)
    assert (kept, after) == (NO_JSON, before)


GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def started(host: FleetHost) -> str:
    return host.text("systemctl", "show", "-p", "ExecMainStartTimestampMonotonic", "docker")
