"""Remedies for GPU, FAB, IB and JIT: modules, daemons and tools beside a driver that stays."""

from __future__ import annotations

from ..core.fixes import Risk
from ..core.reading import Absent, Known
from ..core.rules import World
from ..core.steps import Step
from ..core.version import at_least
from ..probes.caches import JitCaches, kernel_folder
from ..probes.driver import Driver
from ..probes.fabric import FabricManager
from ..probes.kernel import Modules
from ..probes.slurm import GpuOwners
from ..rules import where
from ..rules.checks_gpu_driver import driver_version
from ..rules.toolchain import driver_cuda, floor_of, inside
from ..steps.command import command_step
from ..steps.directory import directory_step
from ..steps.kernel import module_steps
from ..steps.service import drop_in, restart_step, service_step
from .remedy import Remedy, manager_of
from .sources import packages

MANAGER = "nvidia-fabricmanager"
UNIFIED = 580
"""From this driver branch on the package of fabric manager has no branch in its name."""


def _on_disk(world: World, *names: str) -> tuple[Step, ...]:
    """Return the steps that load modules, without those that this kernel does not have."""
    reading = world.facts[Modules]
    lacking = {n for n in names if isinstance(reading, Known) and not _may(reading.value, n)}
    return tuple(step for name in names if name not in lacking for step in module_steps(name))


def _may(modules: Modules, name: str) -> bool:
    return modules.installed.get(name) is not False


def without_driver(world: World) -> str:
    """Say that no driver is loaded, "" where one is."""
    return "" if driver_version(world) else "no driver is loaded: see GPU-02"


_UVM = '[ -e "$R/dev/nvidia-uvm" ] && echo present || echo absent'


def _uvm(world: World) -> tuple[Step, ...]:
    node = command_step(
        "nvidia-uvm", "make /dev/nvidia-uvm", _UVM, "present", ("nvidia-modprobe", "-u", "-c=0")
    )
    return (*_on_disk(world, "nvidia_uvm"), node)


_PERSISTENCE = r"""
t=$(nvidia-smi --query-gpu=persistence_mode --format=csv,noheader 2>/dev/null) || t=unknown
case $t in *Disabled*) echo off ;; *Enabled*) echo on ;; *) echo unknown ;; esac
"""


def _persistence(world: World) -> tuple[Step, ...]:
    driver = world.facts[Driver]
    now = command_step(
        "persistence", "turn persistence mode on", _PERSISTENCE, "on", ("nvidia-smi", "-pm", "1")
    )
    if not isinstance(driver, Known) or not driver.value.persistenced:
        return (now,)
    # Some distributions start the daemon with --no-persistence-mode.
    kept = drop_in("nvidia-persistenced", "[Service]\nExecStartPost=-/usr/bin/nvidia-smi -pm 1\n")
    return kept, service_step("nvidia-persistenced"), now


def package_of_manager(driver: str) -> str:
    """Return the package of fabric manager for a driver: 570.133.20 → nvidia-fabricmanager-570."""
    branch = driver.partition(".")[0]
    return MANAGER if branch.isdecimal() and int(branch) >= UNIFIED else f"{MANAGER}-{branch}"


def _manager(world: World) -> tuple[Step, ...]:
    """Return the steps for fabric manager of exactly the driver's version, held, and running."""
    reading, driver, manager = world.facts[FabricManager], driver_version(world), manager_of(world)
    if isinstance(reading, Known):
        return (service_step(MANAGER),)
    if not isinstance(reading, Absent) or not driver or not manager:
        return ()
    package = packages(world, package_of_manager(driver), version=driver, hold=True)
    lsm = packages(world, "nvlsm") if _needs_lsm(world) else ()
    return (*lsm, *package, service_step(MANAGER, follows=[package[-1].id]))


def _needs_lsm(world: World) -> bool:
    return world.kind is not None and world.kind.nvlsm


def _equal(world: World) -> tuple[Step, ...]:
    driver, manager = driver_version(world), manager_of(world)
    if not driver or not manager:
        return ()
    package = packages(world, package_of_manager(driver), version=driver, hold=True)
    start = restart_step(MANAGER, files=["/usr/bin/nv-fabricmanager"], follows=[package[-1].id])
    return *package, service_step(MANAGER), start


def gpus_in_use(world: World) -> str:
    """Say who uses the GPUs, "" where surely nobody does."""
    owners = world.facts[GpuOwners]
    if isinstance(owners, Absent):
        return ""
    if not isinstance(owners, Known) or not owners.value.is_whole:
        return "who uses the GPUs is not known: needs a drained host"
    names = ", ".join(f"{o.command} ({o.pid})" for o in owners.value.owners[:3])
    return f"needs a drained host: {names} on the GPUs" if names else ""


def _prerequisites(world: World) -> tuple[Step, ...]:
    reading = world.facts[FabricManager]
    parts = reading.value if isinstance(reading, Known) else FabricManager()
    names = [n for n, has in (("nvlsm", parts.nvlsm), ("infiniband-diags", parts.ibstat))
             if has is False]  # fmt: skip
    lacking = (step for name in names for step in packages(world, name))
    return (*_on_disk(world, "mlx5_ib", "ib_umad"), *lacking)


def _nodes(world: World) -> tuple[Step, ...]:
    more = ("ib_umad",) if _needs_lsm(world) else ()
    return _on_disk(world, "ib_uverbs", "rdma_ucm", *more)


def _rdma(world: World) -> tuple[Step, ...]:
    names = _USER_SPACE.get(manager_of(world), ())
    tools = (step for name in names for step in packages(world, name))
    return (*_on_disk(world, "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs"), *tools)


_USER_SPACE = {
    "apt": ("rdma-core", "ibverbs-providers", "infiniband-diags"),
    "dnf": ("rdma-core", "libibverbs", "infiniband-diags"),
}


def _peer(world: World) -> tuple[Step, ...]:
    return _on_disk(world, "nvidia_peermem")


def _toolkit(world: World) -> tuple[Step, ...]:
    """Return the step for the oldest toolkit that knows these GPUs, without any driver."""
    floor = floor_of(world)
    return packages(world, f"cuda-toolkit-{floor.replace('.', '-')}") if floor else ()


def toolkit_unfit(world: World) -> str:
    """Say why a toolkit on the host would not help, "" where it would."""
    floor, newest = floor_of(world), driver_cuda(world)
    if inside(world):
        return "the engine runs in a container: it needs an image with a compiler"
    if floor and newest and at_least(newest, floor) is False:
        return f"the driver runs CUDA {newest} at most, and these GPUs need {floor}: newer driver"
    return ""


COMPILED = ("triton", "inductor", "flashinfer")
"""Caches that every engine keeps below a cache_folder, as `engines.common` names them."""


def _kernel_folders(world: World, base: str) -> tuple[Step, ...]:
    """Return the steps that make a deployment's folders of kernels, for its image alone.

    They belong to who writes them: root, as containers run here, or the login.
    """
    digest = world.deployment.image.digest if world.deployment else ""
    owner = "root:root" if inside(world) else ""
    own = dict.fromkeys((base.rstrip("/"), kernel_folder(base, digest, "")))
    folders = (*own, *(kernel_folder(base, digest, name) for name in COMPILED))
    why = "a warm cache shortens the next start; another image has another one"
    return tuple(directory_step(path, owner=owner, why=why) for path in folders)


def _cache(world: World) -> tuple[Step, ...]:
    base = where.said(world, "cache_folder")
    if isinstance(base, str) and base.startswith("/"):
        return _kernel_folders(world, base)
    reading = world.facts[JitCaches]
    if not isinstance(reading, Known) or reading.value.is_network or reading.value.is_memory:
        return ()
    folder = reading.value.folder
    return (directory_step(folder),) if folder.startswith("/") else ()


FABRIC = ("FAB-01", "GPU-22")
"""What a fabric that is not complete shows as: it needs no hand where its manager comes to run."""

ROWS: tuple[Remedy, ...] = (
    Remedy("GPU-07", "load nvidia_uvm", _uvm, 10, unless=without_driver, leads_to=("GPU-22",)),
    Remedy("GPU-08", "keep the driver loaded: persistence mode", _persistence, 11,
           touches_units=True),
    Remedy("IB-05", "load RDMA modules and install their tools", _rdma, 12,
           leads_to=("IB-16",)),
    Remedy("IB-04", "load the modules that make /dev/infiniband", _nodes, 13),
    Remedy("IB-09", "load nvidia_peermem", _peer, 14),
    Remedy("FAB-04", "give fabric manager what it needs", _prerequisites, 15,
           leads_to=FABRIC),
    Remedy("FAB-03", "bring fabric manager to the driver's version", _equal, 16, Risk.SERVICE,
           cost="fabric manager restarts", unless=gpus_in_use, touches_units=True,
           leads_to=FABRIC),
    Remedy("FAB-02", "run fabric manager", _manager, 17, touches_units=True, leads_to=FABRIC),
    Remedy("JIT-01", "install a CUDA toolkit without a driver", _toolkit, 30, cost="4 to 8 GiB",
           unless=toolkit_unfit, passes=False, on_note=False,
           told_as=("vllm-without-nvcc", "sglang-without-nvcc", "kimi-k3-needs-nvcc")),
    Remedy("JIT-06", "make the folders of compiled kernels", _cache, 31),
)  # fmt: skip
