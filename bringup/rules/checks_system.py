"""OS-01 to OS-10 but OS-04: kernel, limits and processors: what slows or ends an engine unseen."""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.identity import Identity
from ..probes.inside import Inside
from ..probes.kernel_log import KernelLog
from ..probes.memory import MemoryErrors, SharedMemory
from ..probes.system import Kernels, Limits, Processors, Stuck, shown
from ..probes.text import UNLIMITED, version
from .judging import QUIET, SOFT, not_told, unread

OWN = "docs/checks.md#operating-system"
HEALTH = "https://docs.nvidia.com/health-validation/reference/checks/"
TESTED = {
    "ubuntu": ("22.04", "24.04", "26.04"),
    "debian": ("12", "13"),
    "rhel": ("8", "9", "10"),
    "rocky": ("8", "9", "10"),
    "almalinux": ("8", "9", "10"),
    "sles": ("15", "16"),
    "dgxos": ("6", "7"),
}
"""Systems for which NVIDIA ships data-centre drivers; newer ones may work as well."""

SHM_MIB = 32 * 1024  # our own word for "tens of GiB"
FILES = 65_536
FEW_FILES = 4096  # our own: weights, streams and logs of one worker reach it
MEMLOCK_KIB = 1024 * 1024 * 64


def _kernel(world: World) -> Seen:
    reading = world.facts[Identity]
    if not isinstance(reading, Known):
        return unread(reading)
    told = reading.value
    line = f"{told.os_name or told.os_id}, kernel {told.kernel}"
    release = version(told.kernel)
    if not told.os_id or not release:
        return not_told("system and kernel")
    if release < (5, 12):
        return warned(f"{line}: before 5.12 there is no DMA-BUF for RDMA")
    known = TESTED.get(told.os_id, ())
    if not any(told.os_version == v or told.os_version.startswith(v + ".") for v in known):
        return warned(line, level=Level.NOTE)
    return passed(line)


def _in_container(world: World) -> bool:
    return world.deployment is None or world.deployment.in_container


def _memlock(world: World) -> Seen:
    inside, limits = world.facts[Inside], world.facts[Limits]
    if isinstance(inside, Known) and inside.value.memlock_kib is not None:
        kib = inside.value.memlock_kib
        place = f"container {inside.value.container}".strip()
        return _lock(f"{place}: memlock {_kib(kib)}", kib)
    if world.deployment is None and not isinstance(inside, Known):
        return skipped("no container of ours is up, none is planned")
    if _in_container(world):
        return skipped("no container of ours is up; the start script sets --ulimit memlock=-1")
    if not isinstance(limits, Known) or limits.value.memlock is None:
        return not_told("memlock of this login") if isinstance(limits, Known) else unread(limits)
    limit = limits.value.memlock
    return _lock(f"login: memlock {shown(limit)} bytes", limit if limit < 0 else limit // 1024)


def _kib(kib: int) -> str:
    return "unlimited" if kib == UNLIMITED else f"{kib} KiB"


def _lock(line: str, kib: int) -> Seen:
    if kib == UNLIMITED:
        return passed(line)
    return warned(line, level=Level.NOTE) if kib >= MEMLOCK_KIB else failed(line)


def _shared(world: World) -> Seen:
    inside, host = world.facts[Inside], world.facts[SharedMemory]
    if isinstance(inside, Known) and inside.value.ipc == "host":
        return passed(f"container {inside.value.container}: host IPC")
    if isinstance(inside, Known) and inside.value.shm_mib is not None:
        return _shm(f"container {inside.value.container}", inside.value.shm_mib)
    if isinstance(host, Known):
        return _shm("host", host.value.total_mib)
    return failed(host.evidence) if isinstance(host, Absent) else unread(host)


def _shm(place: str, mib: int) -> Seen:
    line = f"{place}: /dev/shm has {mib} MiB"
    if mib >= SHM_MIB:
        return passed(line)
    return failed(line) if mib <= 64 else warned(line, level=Level.NOTE)


def _processors(world: World) -> Seen:
    reading = world.facts[Processors]
    if not isinstance(reading, Known):
        return unread(reading)
    told = reading.value
    if told.online < told.present:
        return failed(f"{told.online} of {told.present} processors are online")
    if "powersave" in told.governors:
        return warned(f"governor {' '.join(told.governors)}", level=Level.NOTE)
    nodes = f", {told.nodes} NUMA nodes" if told.nodes else ""
    return passed(f"{told.online} processors{nodes}")


def _swap(world: World) -> Seen:
    reading = world.facts[Processors]
    if not isinstance(reading, Known):
        return unread(reading)
    told = reading.value
    lines = [f"swap {told.swap_kib // 1024} MiB"] if told.swap_kib else []
    lines += ["numa_balancing is on"] if told.numa_balancing else []
    if lines:
        return warned(*lines)
    if told.swap_kib is None or told.numa_balancing is None:
        return not_told("swap or numa_balancing")
    return passed("no swap, numa_balancing is off")


def _files(world: World) -> Seen:
    reading = world.facts[Limits]
    if not isinstance(reading, Known):
        return unread(reading)
    daemon, login = reading.value.engine.get("files"), reading.value.files
    limit = daemon if _in_container(world) and daemon is not None else login
    if limit is None:
        return not_told("limit of open files")
    whose = "docker daemon" if limit is daemon else "login"
    line = f"{whose}: {shown(limit)} open files"
    if limit == UNLIMITED or limit >= FILES:
        return passed(line)
    return warned(line, level=Level.WARN if limit < FEW_FILES else Level.NOTE)


def _stuck(world: World) -> Seen:
    """One look proves little; a process of the driver in state D is still worth a word."""
    reading = world.facts[Stuck]
    if not isinstance(reading, Known):
        return unread(reading)
    ours = [p for p in reading.value.processes if "nv" in p.lower() or "python" in p.lower()]
    if ours:
        return warned(*(f"{name} is in uninterruptible sleep" for name in ours[:4]))
    return passed(reading.evidence)


def _reboot(world: World) -> Seen:
    reading = world.facts[Kernels]
    if isinstance(reading, Absent):
        return skipped(reading.evidence)
    if isinstance(reading, Unknown):
        return unread(reading)
    told = reading.value
    if told.next != told.running and told.installed.get(told.running):
        if not told.installed[told.next]:
            line = f"next kernel {told.next} has no nvidia module, running {told.running} has"
            return failed(line, remedy=f"dkms autoinstall -k {told.next}; before any reboot")
        return warned(f"running {told.running}, the next start takes {told.next}", level=Level.NOTE)
    if told.running not in told.installed:
        return warned(f"modules of the running kernel {told.running} are gone from /lib/modules")
    if told.wants_reboot:
        return warned(told.wants_reboot, level=Level.NOTE)
    return passed(reading.evidence)


def _reported(world: World) -> str:
    """Return the kernel's last line about an uncorrected error of a memory module."""
    log = world.facts[KernelLog]
    lines = log.value.complaints or () if isinstance(log, Known) else ()
    return next((line for line in reversed(lines) if re.search(r"EDAC \w+: \d+ UE\b", line)), "")


def _errors(world: World) -> Seen:
    reading = world.facts[MemoryErrors]
    if line := _reported(world):
        return failed(line)
    if isinstance(reading, Absent):
        return skipped(reading.evidence)
    if isinstance(reading, Unknown):
        return unread(reading)
    if reading.value.uncorrected:
        return failed(reading.evidence)
    return warned(reading.evidence, level=Level.NOTE) if reading.value.corrected else passed("none")


ROWS: tuple[Row[World], ...] = (
    Row(
        "OS-01", "System and kernel are known to work", _kernel,
        "drivers and RDMA are tested on few systems; DMA-BUF needs kernel 5.12",
        "https://docs.nvidia.com/datacenter/tesla/drivers/", "plan an upgrade", QUIET,
    ),
    Row(
        "OS-02", "Memory can be locked without limit", _memlock,
        "RDMA registers memory by locking it; docker's default is 8 MiB",
        "https://github.com/openucx/ucx/issues/7221",
        "start the container with --ulimit memlock=-1 --cap-add IPC_LOCK; on the host: "
        "/etc/security/limits.d", SOFT,
    ),
    Row(
        "OS-03", "Shared memory is large enough", _shared,
        "NCCL and the engine's processes exchange data in /dev/shm; docker gives 64 MiB, and the "
        "error reads 'No space left on device'",
        OWN, "start the container with --ipc host, or --shm-size 64g", SOFT,
    ),
    Row(
        "OS-05", "All processors run at full speed", _processors,
        "launching kernels is bound by one processor's speed",
        HEALTH, "cpupower frequency-set -g performance; processors offline: look at the BIOS", SOFT,
    ),
    Row(
        "OS-06", "Neither swap nor NUMA balancing moves memory", _swap,
        "both stall a process that serves",
        "https://github.com/ROCm/cvs", "swapoff -a; sysctl -w kernel.numa_balancing=0; keep both "
        "in /etc/fstab and /etc/sysctl.d", QUIET,
    ),
    Row(
        "OS-07", "Enough files may be open", _files,
        "each stream and each shard is an open file",
        OWN, "systemctl edit docker: [Service] LimitNOFILE=1048576", QUIET,
    ),
    Row(
        "OS-08", "No driver process is stuck", _stuck,
        "a process in uninterruptible sleep cannot be killed, and keeps its GPU",
        "https://github.com/leptonai/gpud", "look again in a minute; if it stays: drain and reboot",
        SOFT,
    ),
    Row(
        "OS-09", "The next start has a driver", _reboot,
        "a kernel upgrade without a module for it takes the GPUs away at the next reboot",
        OWN, "reboot when drained", SOFT,
    ),
    Row(
        "OS-10", "Host memory has no errors", _errors,
        "uncorrected errors end processes at random",
        "https://docs.kernel.org/driver-api/edac.html", "find the module: edac-util -v; replace it",
        SOFT,
    ),
)  # fmt: skip
