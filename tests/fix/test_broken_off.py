"""A fix that is broken off leaves nothing half done; the next run goes on, `undo` takes it back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bringup.core.errors import Unreachable
from bringup.core.event import Event

from ..fleet.yard import FleetHost, Yard
from .bench import Bench
from .faults import ENGINE, FAULTS, IN_CONTAINER
from .test_provision_fix import ROOT, Desk, desk_for

pytestmark = [pytest.mark.root, pytest.mark.slow]

TOOLKIT = "nvidia-container-toolkit"
PURGE = f"apt-get -q -y purge {TOOLKIT} >/dev/null 2>&1 || :"
REPOSITORY = r"""
set -eu
cd /var/lib/stand-in
rm -f ./*+slow*.deb
if [ "$1" = slow ]; then
  d=$(mktemp -d)
  dpkg-deb -R nvidia-container-toolkit_1.18.0-1.deb "$d"
  sed -i 's/^Version: .*/Version: 1.18.0+slow-1/' "$d/DEBIAN/control"
  cat >"$d/DEBIAN/postinst" <<'END'
#!/bin/sh
: >/run/begun
for _ in $(seq 600); do [ ! -e /run/go ] || exit 0; sleep 0.1; done
exit 1
END
  chmod 755 "$d/DEBIAN/postinst"
  dpkg-deb -b "$d" nvidia-container-toolkit_1.18.0+slow-1.deb >/dev/null
fi
for deb in *.deb; do
  dpkg-deb -f "$deb"
  echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
  echo "SHA256: $(sha256sum "$deb" | cut -d ' ' -f 1)"; echo
done >Packages
apt-get -q update >/dev/null
rm -f /run/begun /run/go
"""


@contextmanager
def slow_toolkit(host: FleetHost) -> Iterator[None]:
    """Let the newest toolkit take until /run/go is there to install itself."""
    host.exec("sh", "-c", PURGE)
    host.exec("sh", "-c", REPOSITORY, "sh", "slow")
    try:
        yield
    finally:
        host.exec("sh", "-c", f": >/run/go; {PURGE}")
        host.exec("sh", "-c", REPOSITORY, "sh", "as it was")


def begin(desk: Desk, *words: str) -> subprocess.Popen[bytes]:
    folder = desk.folder
    return subprocess.Popen(
        [sys.executable, "-m", "bringup", "provision", "--host", desk.host.name, *words,
         "--inventory", folder / "inventory", "--state", folder / "state",
         "--known-hosts", desk.yard.known_hosts],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip


def wait(until: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_a_package_that_is_being_installed_is_finished_and_the_next_run_waits_for_it(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path
) -> None:
    text = IN_CONTAINER.replace("HOST", gpu_host.name)
    desk = desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300", deployment=text)
    gpu_host.exec("sh", "-c", ENGINE)
    with slow_toolkit(gpu_host):
        first = begin(desk, "--fix-only", "CTR-02")
        wait(lambda: gpu_host.exec("test", "-e", "/run/begun", check=False).returncode == 0, "apt")
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=60) == 130
        again = begin(desk, "--fix-only", "CTR-02")
        gpu_host.exec("touch", "/run/go")
        again.wait(timeout=240)
        state = gpu_host.text("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", TOOLKIT)
        Bench(desk).undo(to=desk.receipts()[0])
        gone = gpu_host.exec("dpkg-query", "-W", TOOLKIT, check=False).returncode
    assert state == "installed 1.18.0+slow-1"
    assert gone == 1


def test_a_line_that_drops_at_any_step_costs_that_step_only_and_undo_takes_all_back(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path
) -> None:
    ids = ("GPU-08", "OS-05", "OS-06")
    for fault in (fault for fault in FAULTS if fault.finding in ids):
        gpu_host.exec("sh", "-c", fault.script)
    bench = Bench(desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300"))
    receipts: list[int] = []
    while (error := bench.provision(*ids, listen=Cut(gpu_host)).error) is not None:
        assert isinstance(error, Unreachable), error
        receipts.append(len(bench.desk.receipts()))
    assert receipts == list(range(1, len(receipts) + 1)), "each run leaves a receipt"
    assert len(receipts) > 2
    assert bench.provision(*ids).rounds == ()

    assert bench.undo(to=bench.desk.receipts()[0]).ended.error is None
    was = bench.provision(*ids, check=True)
    assert {fix.finding.id for fix in was.fixes if fix.is_taken} == set(ids)


class Cut:
    """Kills every session of a host when the second step of a run begins: the first is kept."""

    def __init__(self, host: FleetHost) -> None:
        self.host = host
        self.begun: list[str] = []

    def __call__(self, event: Event) -> None:
        if event.stage == "apply" and not event.is_end:
            self.begun.append(event.text)
            if len(self.begun) == 2:
                self.host.exec("pkill", "-KILL", "-f", "^sshd: root")
