"""FAB-01 to FAB-03, FAB-05 and FAB-09: is the NVLink fabric ready, and who manages it?

"Fabric manager is active" is not "the fabric is ready", and the other way round, so the state
that each GPU reports and the daemon are read both, and each finding names the other.
"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.fabric import FabricManager
from ..probes.gpu import Gpu, Gpus
from ..probes.identity import Identity
from .checks_gpu_driver import driver_version
from .judging import (
    SOFT,
    gpu_count,
    gpus_of,
    not_told,
    of_gpus,
    told,
    unread,
    uptime_s,
)

WAIT_S = 300  # joining the fabric may take so long after the start
RESTARTS = 3
OPERATOR = "https://github.com/NVIDIA/gpu-operator/issues/2781"
ORDER = (
    "modprobe -a mlx5_ib ib_umad && "
    "printf 'mlx5_ib\\nib_umad\\n' > /etc/modules-load.d/nvlink5.conf; "
    "apt-get install nvlsm; systemctl restart nvidia-fabricmanager; "
    "nvidia-smi -q | grep -A 2 -w Fabric"
)


def applies(world: World) -> str:
    """Return "" where a fabric manager belongs on this host, else why it does not."""
    kind, count = world.kind, gpu_count(world)
    if kind is None:
        return "" if _shows_fabric(world) else "no kind of host with a fabric manager is known here"
    if kind.form == "rack":
        return f"{kind.name}: the switch trays of the rack manage the fabric"
    if not kind.fabric_manager:
        return f"{kind.name}: no NVSwitch on these boards"
    if count == 1 and not _shows_fabric(world):
        return "one GPU of a board: who owns the others manages the fabric"
    manager = world.facts[FabricManager]
    if isinstance(manager, Absent) and _is_lent(world) and is_complete(world) is not False:
        return "the GPUs are lent to this host: fabric manager runs where the board is"
    return ""


def _is_lent(world: World) -> bool:
    """Tell whether a virtual machine or a part of a board is all that this host has."""
    board, count = world.kind.gpu_count if world.kind else None, gpu_count(world)
    identity = world.facts[Identity]
    is_virtual = isinstance(identity, Known) and bool(identity.value.virtual)
    return is_virtual or bool(board and count and count < board)


def _shows_fabric(world: World) -> bool:
    """Without a known kind, a fabric that GPUs report or a manager that failed must be judged."""
    manager = world.facts[FabricManager]
    states = {gpu.fabric_state for gpu in gpus_of(world)} - {"", "N/A"}
    return bool(states) or (isinstance(manager, Known) and manager.value.state == "failed")


def is_complete(world: World) -> bool | None:
    """Tell whether every GPU that tells its fabric state has joined; None where none tells."""
    states = [gpu for gpu in gpus_of(world) if gpu.fabric_state not in ("", "N/A")]
    if not states:
        return None
    return all(g.fabric_state == "Completed" and _is_success(g) for g in states)


def _is_success(gpu: Gpu) -> bool:
    return gpu.fabric_status in ("", "Success", "N/A")


def _state(world: World) -> Seen:
    if world.kind is not None and world.kind.form in ("pcie", "unified"):
        return skipped(applies(world))
    early = (uptime_s(world) or WAIT_S) < WAIT_S

    def judge(gpu: Gpu) -> Seen | None:
        if gpu.fabric_state in ("", "N/A"):
            return None
        line = f"fabric state {gpu.fabric_state}, status {gpu.fabric_status or '?'}"
        if gpu.fabric_state == "Completed" and _is_success(gpu):
            return passed()
        if gpu.fabric_state == "In Progress" and early and not has_failed(world):
            return warned(f"{line}: the host is up for {uptime_s(world)} s")
        return failed(line, remedy=_join(world))

    reading = world.facts[Gpus]
    if isinstance(reading, Known) and any(g.fabric_state == "N/A" for g in reading.value.gpus):
        return skipped("the driver reports no fabric for these GPUs")
    return of_gpus(world, judge, fine="every GPU has joined the fabric: Completed, Success")


def _join(world: World) -> str:
    if world.kind is None or world.kind.nvlsm:
        return ORDER
    return "systemctl restart nvidia-fabricmanager; nvidia-smi -q | grep -A 2 -w Fabric"


def has_failed(world: World) -> bool:
    manager = world.facts[FabricManager]
    return isinstance(manager, Known) and manager.value.state in ("failed", "inactive")


def _service(world: World) -> Seen:
    if why := applies(world):
        return skipped(why)
    reading = world.facts[FabricManager]
    complete = is_complete(world)
    if isinstance(reading, Absent):
        return _no_manager(reading, complete=complete)
    if isinstance(reading, Unknown):
        return unread(reading)
    manager = reading.value
    if manager.state == "active":
        if (manager.restarts or 0) >= RESTARTS:
            return warned(f"active, after {manager.restarts} restarts", *manager.said[-2:])
        if manager.enabled == "disabled":
            line = "nvidia-fabricmanager is active, and the next boot does not start it"
            return warned(line, level=Level.NOTE, remedy="systemctl enable nvidia-fabricmanager")
        return passed("nvidia-fabricmanager is active")
    if manager.state in ("failed", "inactive", "deactivating"):
        line = f"nvidia-fabricmanager is {manager.state}"
        if complete:
            return failed(line, "the fabric was completed before: it lasts until the next reset",
                          level=Level.WARN)  # fmt: skip
        return failed(line, *_telling(manager.said))
    if manager.state:
        return warned(f"nvidia-fabricmanager is {manager.state}")
    return not_told("the state of nvidia-fabricmanager")


def _no_manager(reading: Absent, *, complete: bool | None) -> Seen:
    if complete:
        return passed("no fabric manager here, and the fabric is complete: it runs elsewhere")
    return failed(reading.evidence)


def _telling(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the log lines that say why: the first with an error, else the last."""
    pattern = r"don't match|rror|ailed!|NOTHING_TO_DO|not (?:found|loaded)|Pre-NVL5"
    return tuple(line for line in lines if re.search(pattern, line))[:2] or lines[-1:]


def _version(world: World) -> Seen:
    if why := applies(world):
        return skipped(why)
    reading = world.facts[FabricManager]
    if not isinstance(reading, Known):
        return unread(reading)
    manager = reading.value
    have = told(manager.version) or manager.package.partition("-")[0]
    driver = driver_version(world)
    if not have or not driver:
        return _refused(manager) or not_told("versions of fabric manager and driver")
    if have == driver:
        return passed(f"fabric manager {have} = driver {driver}")
    line = f"fabric manager {have}, driver {driver}"
    floats = (f"installed package {manager.package}",) if manager.package else ()
    level = Level.WARN if is_complete(world) and manager.state == "active" else Level.BLOCK
    return failed(line, *floats, level=level, remedy=_pin(driver))


def _refused(manager: FabricManager) -> Seen | None:
    """Return the manager's own word that the driver is of another version."""
    line = next((line for line in manager.said if "match with driver version" in line), "")
    found = re.search(r"driver version (\d[\d.]*\d)", line)
    return failed(line, remedy=_pin(found[1])) if found else None


def _pin(driver: str) -> str:
    return (
        f"apt-get install nvidia-fabricmanager={driver}-1 (or your distribution's package of "
        "that version); apt-mark hold nvidia-fabricmanager; systemctl restart nvidia-fabricmanager"
    )


def _health(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        health = {k: v for k, v in gpu.fabric_health.items() if v not in ("", "N/A")}
        if not health:
            return None
        bad = [f"{k} {v}" for k, v in sorted(health.items()) if _is_ill(k, v)]
        weak = [f"{k} {v}" for k, v in sorted(health.items()) if v in ("Degraded", "Limited")]
        if bad:
            return failed(*bad)
        return warned(*weak) if weak else passed()

    if not any(set(g.fabric_health.values()) - {"", "N/A"} for g in gpus_of(world)):
        return skipped("the driver reports no fabric health for these GPUs")
    return of_gpus(world, judge, fine="fabric health is good")


def _is_ill(name: str, word: str) -> bool:
    flags = ("route_unhealthy", "access_timeout_recovery", "route_recovery_in_progress")
    if word in ("Unhealthy", "Insufficient"):
        return True
    if name == "incorrect_configuration":
        return word not in ("None", "False", "No")
    return name in flags and word in ("True", "Yes")


def _applicable(world: World) -> Seen:
    why = applies(world)
    if why:
        return skipped(why)
    return passed(f"{world.kind.name if world.kind else 'this board'} needs a fabric manager")


ROWS: tuple[Row[World], ...] = (
    Row(
        "FAB-01",
        "Every GPU has joined the fabric",
        _state,
        reason="until the state is Completed, CUDA answers error 802, however good nvidia-smi "
        "looks; joining may take 300 s after a start",
        source="https://github.com/Azure/azhpc-images/issues/506",
        remedy=ORDER,
    ),
    Row(
        "FAB-02",
        "Fabric manager runs",
        _service,
        reason="it sets up the NVSwitches; a completed state may outlive a dead daemon, until the "
        "next reset",
        source="https://github.com/NVIDIA/NVSentinel/issues/883",
        remedy="journalctl -u nvidia-fabricmanager -b; systemctl enable --now nvidia-fabricmanager",
    ),
    Row(
        "FAB-03",
        "Fabric manager is of the driver's version",
        _version,
        reason="it refuses to start beside any other version, also of the same branch",
        source="https://github.com/NVIDIA/gpu-operator/issues/544",
    ),
    Row(
        "FAB-05",
        "Fabric health is good",
        _health,
        reason="a degraded fabric slows or stops traffic between GPUs",
        source="https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
        remedy="drain the host; nvidia-smi -q | grep -A 14 -w Fabric; call service",
        levels=SOFT,
    ),
    Row(
        "FAB-09",
        "Does a fabric manager belong here?",
        _applicable,
        reason="PCIe boards, single GPUs and rack trays have none; asking for one there is a "
        "false alarm",
        source="https://github.com/leptonai/gpud",
    ),
)
