"""Slurm beside us: does it run here, may it give our GPUs away, would its hooks kill a worker."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .text import answered, first, rows, told, whole


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """This host as Slurm's controller sees it. `state` has all its flags, e.g. IDLE+DRAIN."""

    name: str
    state: str
    reason: str = ""
    resources: str = ""  # GRES
    allocated: str = ""  # trackable resources given to jobs


@dataclass(frozen=True, slots=True)
class Job:
    """One job on this host."""

    id: str
    user: str
    state: str
    resources: str = ""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Slurm on this host. Parts that nobody could look at say why."""

    daemon: str  # ActiveState of slurmd, or "running" by its process
    node: Reading[SlurmNode]
    jobs: Reading[tuple[Job, ...]]


@dataclass(frozen=True, slots=True)
class SshDevices:
    """Which devices a login over SSH may open. `allow` () with policy "auto" means all."""

    policy: str
    allow: tuple[str, ...] = ()

    @property
    def hides_gpus(self) -> bool:
        """Tell whether the policy leaves NVIDIA devices out."""
        is_closed = self.policy in ("closed", "strict") or bool(self.allow)
        return is_closed and not any("nvidia" in device for device in self.allow)


@dataclass(frozen=True, slots=True)
class GpuOwner:
    """A process that holds a GPU's device file, and whose it is."""

    pid: int
    command: str = ""
    user: str = ""
    cgroup: str = ""

    @property
    def place(self) -> str:
        """Return who owns the process, by its control group: slurm job, container, or login."""
        job = re.search(r"/job_(\d+)", self.cgroup)
        container = re.search(r"(?:docker|libpod)[-/]([0-9a-f]{12,64})", self.cgroup)
        if job:
            return f"Slurm job {job[1]}"
        if container:
            return f"container {container[1][:12]}"
        return f"user {self.user}" if self.user else "nobody known"


@dataclass(frozen=True, slots=True)
class GpuOwners:
    """All processes on the GPUs. `is_whole` False: this login does not see those of others."""

    owners: tuple[GpuOwner, ...]
    is_whole: bool = True


NODE = r"""
unit=
if tool systemctl >/dev/null; then
  unit=$(ask systemctl show slurmd -p LoadState -p ActiveState 2>/dev/null | tr '\n' ' ')
  case $unit in
  *LoadState=not-found*) unit= ;;
  *ActiveState=*) unit=${unit##*ActiveState=}; unit=${unit%% *} ;;
  esac
fi
[ -n "$unit" ] || for f in "$R"/proc/[0-9]*/comm; do
  c=; { read -r c <"$f"; } 2>/dev/null
  [ "$c" = slurmd ] && { unit=running; break; }
done
s=; tool scontrol >/dev/null && s=yes
if [ -z "$unit$s" ] && [ ! -d "$R/etc/slurm" ]; then
  [ -d "$R/etc" ] || { echo "no folder /etc"; exit 4; }
  echo "absent: no slurmd, no scontrol, no /etc/slurm"; exit 3
fi
printf 'daemon\t%s\n' "${unit:-none}"
h=; { read -r h <"$R/proc/sys/kernel/hostname"; } 2>/dev/null
[ -n "$h" ] || { read -r h <"$R/etc/hostname"; } 2>/dev/null; h=${h%%.*}
limit=
command -v timeout >/dev/null && limit='timeout -k 1 3'
if [ -n "$s" ]; then
  t=$($limit "$(tool scontrol)" -o show node "$h" 2>&1); printf 'node\t%s\t%s\n' $? "$t"
fi
if tool squeue >/dev/null; then
  t=$($limit "$(tool squeue)" -h -w "$h" -o 'job|%i|%u|%T|%b' 2>&1); rc=$?
  printf 'queue\t%s\n' "$rc"; printf '%s\n' "$t" | sed 's/^/line	/'
fi
printf 'end\tof slurm\n'
"""


def parse_slurm(section: Section) -> Reading[Slurm]:
    """Return Slurm's state on this host; absent where nothing of it is installed."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    daemon = first(found, "daemon")
    if first(found, "end") != "of slurm" or not daemon:
        return Unknown("Slurm's answer was cut off", section.first)
    code, _, text = first(found, "node").partition("\t")
    slurm = Slurm(daemon, node_of(whole(code), text), _jobs(found))
    return Known(slurm, f"slurmd {daemon}, node {shown(slurm.node)}")


def node_of(code: int | None, text: str) -> Reading[SlurmNode]:
    """Read ``scontrol -o show node``; a host that the controller does not know is absent."""
    if re.search(r"Node \S+ not found", text):
        return Absent(text.strip())
    pairs = dict(re.findall(r"(\w+)=(.*?)(?=\s+[A-Z]\w*=|$)", text.replace("\n", " ")))
    if code != 0 or "NodeName" not in pairs or "State" not in pairs:
        return Unknown(text.strip()[:200] or "scontrol told nothing", text.strip()[:200])
    node = SlurmNode(
        pairs["NodeName"],
        pairs["State"],
        pairs.get("Reason", "").strip(),
        pairs.get("Gres", "").replace("(null)", ""),
        pairs.get("AllocTRES", ""),
    )
    return Known(node, f"NodeName={node.name} State={node.state} Reason={node.reason}".strip())


def _jobs(found: dict[str, tuple[str, ...]]) -> Reading[tuple[Job, ...]]:
    lines = found.get("line", ())
    if first(found, "queue") != "0":
        return Unknown(lines[0] if lines else "squeue is not there")
    fields = (line.split("|") for line in lines if line.startswith("job|"))
    jobs = tuple(Job(*parts[1:5]) for parts in fields if len(parts) == 5)
    return Known(jobs, ", ".join(f"job {j.id} of {j.user} {j.state}" for j in jobs) or "no jobs")


def shown(node: Reading[SlurmNode]) -> str:
    """Return a node's state in words."""
    if isinstance(node, Known):
        return node.value.state
    return "not known to the controller" if isinstance(node, Absent) else f"unknown: {node.why}"


SSH = r"""
tool systemctl >/dev/null || { echo "systemctl: not found"; exit 4; }
for u in ssh sshd; do
  t=$(ask systemctl show $u -p LoadState -p DevicePolicy -p DeviceAllow 2>/dev/null) || continue
  case $t in *LoadState=loaded*) printf '%s\n' "$t"; exit 0 ;; esac
done
echo "systemd knows no ssh unit"; exit 4
"""


def parse_ssh(section: Section) -> Reading[SshDevices]:
    """Read ``systemctl show``: one DeviceAllow line a device."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    policy = re.search(r"(?m)^DevicePolicy=(\w+)$", answer.value)
    if policy is None:
        return Unknown("systemctl tells no device policy", section.first)
    allow = tuple(re.findall(r"(?m)^DeviceAllow=(\S.*)$", answer.value))
    devices = SshDevices(policy[1], allow)
    return Known(devices, f"DevicePolicy={policy[1]} DeviceAllow={', '.join(allow)}")


# By open device files, not by nvidia-smi, which shows no process of another PID namespace.
OWNERS = r"""
ls "$R"/dev/nvidia[0-9]* >/dev/null 2>&1 || { echo "absent: no GPU device file"; exit 3; }
[ "$(id -u)" = 0 ] && printf 'whole\tyes\n'
ls -l "$R"/proc/[0-9]*/fd 2>/dev/null | awk '
  /^\/.*:$/ { pid = $0; sub(/\/fd:$/, "", pid); sub(/.*\//, "", pid) }
  / -> .*\/dev\/nvidia[0-9]/ { print pid }' | sort -un | head -n 256 | while read -r p; do
  c=; { read -r c <"$R/proc/$p/comm"; } 2>/dev/null
  u=$(stat -c %U "$R/proc/$p" 2>/dev/null)
  g=$(sed -n -e 's/^0:://p' -e 's/^[0-9]*:name=systemd://p' "$R/proc/$p/cgroup" 2>/dev/null |
    sort -r | head -n 1)
  printf 'owner\t%s\t%s\t%s\t%s\n' "$p" "$c" "$u" "$g"
done
printf 'end\tof owners\n'
"""


def parse_owners(section: Section) -> Reading[GpuOwners]:
    """Return who holds GPUs; absent where the host has no GPU device file."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    if first(found, "end") != "of owners":
        return Unknown("the list of processes was cut off", section.first)
    listed = [row for row in rows(answer.value) if row[0] == "owner" and len(row) >= 4]
    owners = tuple(
        GpuOwner(int(pid), command, user, rest[0] if rest else "")
        for _, pid, command, user, *rest in listed
        if whole(pid) is not None
    )
    said = ", ".join(f"{o.command} ({o.pid}) of {o.place}" for o in owners)
    return Known(GpuOwners(owners, first(found, "whole") == "yes"), said or "no process")


PROBES = (
    Probe("slurm", Slurm, NODE, parse_slurm, seconds=9, volatile=True),
    Probe("ssh_devices", SshDevices, SSH, parse_ssh, tool="systemctl"),
    Probe("gpu_owners", GpuOwners, OWNERS, parse_owners, seconds=6, volatile=True),
)
