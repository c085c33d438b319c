"""What a person types where no fix is safe: the exact commands of one finding on one host.

Only what a fact of the host fills in stands here; other findings keep the words of their check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ..core.reading import Known
from ..core.rules import Finding, Status, World
from ..core.words import command
from ..probes.driver import Driver
from ..probes.fabric import FabricManager
from ..probes.gpu import Gpu
from ..probes.hca import Hca, InfiniBand
from ..probes.kernel_log import KernelLog
from ..probes.rdma import AccessControl
from ..probes.slurm import Slurm
from ..probes.system import Kernels
from ..rules.checks_gpu_memory import is_same_bus
from ..rules.checks_gpu_use import LEAK_MIB
from ..rules.judging import gpus_of, told
from ..rules.xids import Action, action_of
from .gpu import package_of_manager


class End(IntEnum):
    """How what was typed comes to count; the gravest stands for all."""

    NOW = 0
    RESET = 1
    REBOOT = 2
    POWER_CYCLE = 3  # boards lose their power, which a reboot does not do


@dataclass(frozen=True, slots=True)
class Hand:
    """Commands for a person. Where `end` is not NOW, nothing may use the GPUs any more.

    `gpus` are the indices that a reset is for.
    """

    commands: tuple[str, ...] = ()
    end: End = End.NOW
    gpus: tuple[int, ...] = ()


Way = Callable[[World, Finding], Hand | None]


def by_hand(world: World, finding: Finding) -> Hand | None:
    """Return what a person types on this host, None where the words of the check have to do."""
    way = WAYS.get(finding.id)
    is_sure = finding.status in (Status.FAIL, Status.WARN)
    return way(world, finding) if way is not None and is_sure else None


def _which(world: World, is_bad: Callable[[Gpu], object]) -> tuple[int, ...]:
    return tuple(gpu.index for gpu in gpus_of(world) if is_bad(gpu))


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _errors(world: World, _: Finding) -> Hand | None:
    off = _which(world, lambda gpu: gpu.ecc is False)
    if off:
        return Hand((f"nvidia-smi -i {_listed(off)} -e 1",), End.RESET, off)
    now = _which(world, lambda gpu: gpu.ecc_uncorrected or gpu.sram_threshold_exceeded)
    if now:
        return Hand((f"nvidia-smi -q -d ECC,ROW_REMAPPER -i {_listed(now)}",), End.RESET, now)
    return None


def _rows(world: World, _: Finding) -> Hand | None:
    broken = _which(world, lambda gpu: gpu.remap_failed or gpu.unrepairable_memory)
    if broken:
        look = f"nvidia-smi -q -i {_listed(broken)}"
        return Hand((f"{look}  # serial numbers for the vendor: the board has to be replaced",))
    waiting = _which(world, lambda gpu: gpu.remap_pending or gpu.repair_pending)
    return Hand((), End.RESET, waiting) if waiting else None


def _recovery(world: World, _: Finding) -> Hand | None:
    actions = {gpu.index: gpu.recovery_action for gpu in gpus_of(world)}
    asked = {index: word for index, word in actions.items() if word not in ("", "None")}
    if any("reboot" in word.lower() for word in asked.values()):
        return Hand((), End.REBOOT)
    lost = _which(world, lambda g: any("requires reset" in w for w in g.unreadable.values()))
    every = tuple(sorted({*asked, *lost}))
    return Hand((), End.RESET, every) if every else None


def _mig(world: World, _: Finding) -> Hand | None:
    cut = _which(world, lambda gpu: gpu.mig or gpu.mig_pending)
    if cut:
        return Hand((f"nvidia-smi -i {_listed(cut)} -mig 0",), End.RESET, cut)
    waiting = _which(world, lambda gpu: gpu.mig_pending is not None and gpu.mig_pending != gpu.mig)
    return Hand((), End.RESET, waiting) if waiting else None


def _mode(world: World, _: Finding) -> Hand | None:
    other = _which(world, lambda gpu: gpu.compute_mode.lower() not in ("", "default"))
    return Hand((f"nvidia-smi -i {_listed(other)} -c 0",)) if other else None


def _power(world: World, _: Finding) -> Hand | None:
    board = world.kind.power_w if world.kind else None
    if not board:
        return None
    other = _which(world, lambda gpu: gpu.power_limit_w and gpu.power_limit_w != board)
    return Hand((f"nvidia-smi -i {_listed(other)} -pl {board}",)) if other else None


def _width(world: World, _: Finding) -> Hand | None:
    narrow = [
        gpu.bus_id for gpu in gpus_of(world)
        if gpu.bus_id and gpu.pcie_width and (gpu.pcie_width_max or 0) > gpu.pcie_width
    ]  # fmt: skip
    looks = (f"lspci -vv -s {bus.lower().removeprefix('0000')} | grep LnkSta" for bus in narrow)
    return Hand((*looks, "poweroff  # then reseat the board or its riser")) if narrow else None


def _owners(world: World, _: Finding) -> Hand | None:
    found = (process.pid for gpu in gpus_of(world) for process in gpu.processes or ())
    pids = tuple(dict.fromkeys(found))
    if not pids and any(gpu.processes is None for gpu in gpus_of(world)):
        return Hand(("fuser -v /dev/nvidia*", *_queue(world)))
    if not pids:  # memory without a process was leaked
        leaked = _which(world, lambda gpu: (gpu.memory_used_mib or 0) > LEAK_MIB)
        return Hand((), End.RESET, leaked) if leaked else None
    asked = f"ps -o pid,user,lstart,args -p {_listed(pids)}"
    return Hand((asked, *_queue(world)))


def _queue(world: World) -> tuple[str, ...]:
    slurm = world.facts[Slurm]
    node = slurm.value.node if isinstance(slurm, Known) else None
    return (command(["squeue", "-w", node.value.name]),) if isinstance(node, Known) else ()


def _xids(world: World, _: Finding) -> Hand | None:
    log = world.facts[KernelLog]
    xids = log.value.xids or () if isinstance(log, Known) else ()
    by_action = {action_of(xid.code, xid.line): xid for xid in xids}
    if Action.REPLACE in by_action:
        return None
    if Action.REBOOT in by_action:
        return Hand(("dmesg | grep -i xid",), End.POWER_CYCLE)
    reset = [x for x in xids if action_of(x.code, x.line) is Action.RESET]
    hit = _which(world, lambda gpu: any(is_same_bus(x.bus_id, gpu.bus_id) for x in reset))
    return Hand(("dmesg | grep -i xid",), End.RESET, hit) if reset else None


def _mismatch(world: World, _: Finding) -> Hand | None:
    """Bring fabric manager to what the next start loads first: then one reboot does."""
    reading = world.facts[Driver]
    driver = reading.value if isinstance(reading, Known) else Driver()
    new = told(driver.on_disk) or told(driver.library)
    hold = "apt-mark hold $(dpkg-query -W -f '${Package}\\n' '*nvidia*')"
    return Hand((*_manager_for(world, new), hold), End.REBOOT)


def _manager_for(world: World, driver: str) -> tuple[str, ...]:
    manager = world.facts[FabricManager]
    if not driver or not isinstance(manager, Known) or manager.value.package.startswith(driver):
        return ()
    package = package_of_manager(driver)
    return (f"apt-get install --allow-change-held-packages {command([f'{package}={driver}*'])}",)


def _unmapped(_world: World, _: Finding) -> Hand:
    line = "echo 'options nvidia_uvm uvm_disable_hmm=1' >/etc/modprobe.d/uvm-hmm.conf"
    return Hand((line,), End.REBOOT)


def _kernel(world: World, _: Finding) -> Hand | None:
    reading = world.facts[Kernels]
    if not isinstance(reading, Known):
        return None
    kernels = reading.value
    lacks = kernels.installed.get(kernels.next) is False
    build = (command(["dkms", "autoinstall", "-k", kernels.next]),) if lacks else ()
    return Hand(build, End.REBOOT)


def _links(world: World, _: Finding) -> Hand:
    return Hand(("nvidia-smi nvlink -s | grep -i inactive",), End.RESET, _which(world, bool))


def _reboot(*looks: str) -> Way:
    def way(_world: World, finding: Finding) -> Hand | None:
        return Hand(looks, End.REBOOT) if finding.status is Status.FAIL else None

    return way


def _compute(world: World) -> tuple[Hca, ...]:
    reading = world.facts[InfiniBand]
    return reading.value.compute if isinstance(reading, Known) else ()


def _rates(world: World, _: Finding) -> Hand | None:
    active = [device for device in _compute(world) if device.is_active and device.rate_gb_s]
    top = max((device.rate_gb_s or 0.0 for device in active), default=0.0)
    slow = [device.name for device in active if (device.rate_gb_s or 0.0) < top]
    every = slow or [device.name for device in active]
    return Hand(tuple(f"mlxlink -d {name} -m -e" for name in every)) if every else None


def _frames(world: World, _: Finding) -> Hand | None:
    small = [d.netdev for d in _compute(world) if d.netdev and d.mtu is not None and d.mtu < 4200]
    sets = tuple(command(["ip", "link", "set", name, "mtu", "9000"]) for name in small)
    return Hand(sets) if sets else None


def _detours(world: World, _: Finding) -> Hand | None:
    reading = world.facts[AccessControl]
    if not isinstance(reading, Known) or not reading.value.validating:
        return None
    off = (f"setpci -s {bridge} ECAP_ACS+6.w=0000" for bridge in reading.value.validating)
    return Hand((*off, "# until the next start; for good: ACS off in the BIOS"))


def _stores(world: World, _: Finding) -> Hand | None:
    services = world.deployment.services if world.deployment else None
    if services is None or not services.etcd:
        return None
    return Hand(
        (command(["etcdctl", "--endpoints", ",".join(services.etcd), "endpoint", "status",
                  "-w", "table"]),)
    )  # fmt: skip


WAYS: Mapping[str, Way] = {
    "GPU-04": _reboot("dmesg | grep -i xid"), "GPU-05": _mismatch, "GPU-09": _errors,
    "GPU-10": _rows, "GPU-11": _recovery, "GPU-12": _mig, "GPU-13": _mode, "GPU-16": _width,
    "GPU-17": _power, "GPU-19": _xids, "GPU-20": _owners, "GPU-21": _unmapped,
    "FAB-06": _links, "FAB-07": _reboot("nvidia-smi topo -p2p r"), "IB-03": _rates,
    "IB-10": _detours, "IB-14": _frames, "NET-01": _stores, "OS-09": _kernel,
}  # fmt: skip
"""By finding: what of this host goes into the commands."""
