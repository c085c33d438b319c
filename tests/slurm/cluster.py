"""Slurm on a practice host: Debian's own, unpacked there, or a stand-in for its tools.

The stand-in prints what Slurm 22.05 prints for the same state; the same tests run on both.
"""

from __future__ import annotations

import fcntl
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.dynamo.processes import until
from tests.fleet.yard import FleetHost

NAMES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2",
         "libhwloc15")  # fmt: skip
KEPT = Path("/var/tmp/bringup-test-slurm")
"""Where unpacked packages are kept for the next run."""

CONF = """\
ClusterName=toy
SlurmctldHost={name}
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/var/lib/slurm
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={name} CPUs=2 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""

SET_UP = r"""
echo 'munge:x:7100:7100::/nonexistent:/bin/false' >>/etc/passwd
echo 'munge:x:7100:' >>/etc/group
mkdir -p /etc/munge /var/log/munge /var/lib/munge /run/munge /var/lib/slurm /var/spool/slurmd
head -c 1024 /dev/urandom >/etc/munge/munge.key
chown -R munge:munge /etc/munge /var/log/munge /var/lib/munge /run/munge
chmod 700 /etc/munge; chmod 400 /etc/munge/munge.key; chmod 755 /run/munge
for b in slurmctld slurmd slurmstepd; do ln -sf "/usr/sbin/$b-wlm" "/usr/sbin/$b"; done
ldconfig
setpriv --reuid=7100 --regid=7100 --clear-groups /usr/sbin/munged &&
  slurmctld && slurmd
"""


def packages() -> Path:
    """Return a folder with Slurm unpacked; skips where Debian's packages cannot be had."""
    KEPT.mkdir(exist_ok=True)
    with (KEPT / "lock").open("w") as lock:  # workers of one run unpack it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _unpacked(KEPT / "root")


def _unpacked(root: Path) -> Path:
    if (KEPT / "whole").exists():
        return root
    done = subprocess.run(
        ["apt-get", "download", "-q", *NAMES], cwd=KEPT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"needs Debian's {NAMES[0]} (apt-get update first): {done.stderr[-200:]}")
    for deb in KEPT.glob("*.deb"):
        subprocess.run(["dpkg", "-x", deb, root], check=True)
    (KEPT / "whole").touch()
    return root


class Cluster(Protocol):
    """One node under Slurm."""

    host: FleetHost

    def start(self) -> None: ...

    def submit(self, seconds: int) -> str:
        """Start a job of the user operator; return its number once it runs."""
        ...

    def cancel(self, job: str) -> None: ...

    def node(self) -> str:
        """Return what scontrol tells of the node."""
        ...

    def silence(self) -> None:
        """Let Slurm's controller answer no more."""
        ...


def await_text(look: object, wanted: str) -> str:
    """Wait until a text holds a word."""
    assert callable(look)
    deadline = time.monotonic() + 240
    while wanted not in (said := str(look())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert wanted in said, said
    return said


def await_gone(look: Callable[[], str], unwanted: str) -> None:
    """Wait until a text holds a word no more."""
    until(lambda: unwanted not in look(), f"{unwanted} is gone", said=look)


@dataclass
class RealCluster:
    """Debian's slurmctld, slurmd and munge, on one host."""

    host: FleetHost
    folder: Path

    def start(self) -> None:
        packed = subprocess.run(
            ["tar", "-C", self.folder, "-cf", "-", "usr", "etc"], capture_output=True, check=True
        ).stdout
        self.host.exec("tar", "-xf", "-", "-C", "/", stdin=packed)
        self.host.exec("mkdir", "-p", "/etc/slurm")
        conf = CONF.format(name=self.host.name)
        self.host.exec("tee", "/etc/slurm/slurm.conf", stdin=conf.encode())
        self.host.exec("sh", "-c", SET_UP)
        await_text(self.node, "State=IDLE")

    def submit(self, seconds: int) -> str:
        done = self.host.exec(
            "setpriv", "--reuid=7001", "--regid=7001", "--clear-groups", "sh", "-c",
            f"cd /tmp && sbatch --parsable -n1 -t 10 -J train --wrap 'sleep {seconds}'",
        )  # fmt: skip
        job = done.stdout.decode().strip()
        await_text(lambda: self.host.text("squeue", "-h", "-j", job, "-o", "%T"), "RUNNING")
        return job

    def cancel(self, job: str) -> None:
        self.host.exec("scancel", job)

    def node(self) -> str:
        return self.host.text("sh", "-c", f"scontrol -o show node {self.host.name} 2>&1; :")

    def silence(self) -> None:
        self.host.exec("pkill", "-KILL", "slurmctld")


SCONTROL = r"""#!/bin/sh
d=/run/stand-in; n=$(hostname)
[ ! -e "$d/silent" ] || { echo "slurm_load_node error: Unable to contact slurm controller (connect failure)"; exit 1; }
state() {
  s=IDLE
  [ -z "$(ls "$d/jobs")" ] || s=MIXED
  [ ! -e "$d/reason" ] || s=$s+DRAIN
  [ ! -e "$d/reservation" ] || s=$s+RESERVED
  echo "$s"
}
[ "$1" != -o ] || shift
case "$1 $2" in
"show node")
  [ "$3" = "$n" ] || { echo "Node $3 not found"; exit 1; }
  printf 'NodeName=%s Arch=x86_64 CoresPerSocket=1  CPUTot=2 Gres=(null) NodeAddr=%s State=%s ThreadsPerCore=1 AllocTRES= CapWatts=n/a' "$n" "$n" "$(state)"
  [ ! -e "$d/reason" ] || printf ' Reason=%s [root@2026-01-13T08:00:00]' "$(cat "$d/reason")"
  echo ;;
"show reservation")
  grep -s "^ReservationName=$3 " "$d/reservation" || { echo "Reservation $3 not found"; exit 1; } ;;
"create reservation")
  shift 2
  for w; do case $w in ReservationName=*) r=$w ;; Nodes=*) nodes=$w ;; Duration=*) t=$w ;; esac; done
  echo "$r StartTime=2026-01-13T08:00:00 $t $nodes NodeCnt=1 Flags=IGNORE_JOBS,SPEC_NODES State=ACTIVE" >"$d/reservation"
  echo "Reservation created: ${r#*=}" ;;
"delete ReservationName="*) rm "$d/reservation" ;;
"update NodeName=$n")
  case $3 in
  State=DRAIN) echo "${4#Reason=}" >"$d/reason" ;;
  State=UNDRAIN) rm -f "$d/reason" ;;
  *) echo "slurm_update error: Invalid node state specified"; exit 1 ;;
  esac ;;
*) echo "invalid keyword: $*"; exit 1 ;;
esac
"""  # noqa: E501 - lines as the real ones print them

SQUEUE = r"""#!/bin/sh
d=/run/stand-in
[ ! -e "$d/silent" ] || { echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"; exit 1; }
for f in "$d"/jobs/*; do
  [ -e "$f" ] || continue
  case $* in
  *%L*) echo "job|${f##*/}|operator|RUNNING|9:59|train" ;;
  *) echo "job|${f##*/}|operator|RUNNING|N/A" ;;
  esac
done
"""  # noqa: E501 - lines as the real ones print them


@dataclass
class StandInCluster:
    """Slurm's tools alone, their state in files."""

    host: FleetHost
    count: int = 0

    def start(self) -> None:
        self.host.exec("mkdir", "-p", "/run/stand-in/jobs")
        for name, text in (("scontrol", SCONTROL), ("squeue", SQUEUE)):
            self.host.exec("tee", f"/usr/bin/{name}", stdin=text.encode())
            self.host.exec("chmod", "755", f"/usr/bin/{name}")

    def submit(self, seconds: int) -> str:
        self.count += 1
        self.host.exec("touch", f"/run/stand-in/jobs/{self.count}")
        self.host.exec(
            "sh", "-c",
            f"(sleep {seconds}; rm -f /run/stand-in/jobs/{self.count}) >/dev/null 2>&1 &",
        )  # fmt: skip
        return str(self.count)

    def cancel(self, job: str) -> None:
        self.host.exec("rm", f"/run/stand-in/jobs/{job}")

    def node(self) -> str:
        return self.host.text("scontrol", "-o", "show", "node", self.host.name)

    def silence(self) -> None:
        self.host.exec("touch", "/run/stand-in/silent")
