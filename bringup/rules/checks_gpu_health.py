"""GPU-08 and GPU-12 to GPU-18: what each GPU says of its own state."""

from __future__ import annotations

import re

from ..core.reading import Known
from ..core.rules import Row, Seen, World, failed, passed, skipped, warned
from ..probes.gpu import Gpu, Gpus
from ..probes.kernel_log import KernelLog
from ..probes.pci import PciGpu, PciGpus
from .checks_gpu_memory import broken, is_same_bus
from .judging import QUIET, SOFT, gpus_of, named, not_told, of_gpus, unread, worst

AZURE = "https://github.com/Azure/azurehpc-health-checks"
GPUD = "https://github.com/leptonai/gpud"
VALIDATION = "https://docs.nvidia.com/health-validation/reference/checks/"


def _persistence(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        if gpu.persistence is None:
            return None
        return passed() if gpu.persistence else warned("persistence mode is off")

    return of_gpus(world, judge, fine="persistence mode is on")


def _mig(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        if gpu.mig:
            return failed("MIG mode is enabled", level=broken(world, gpu))
        if gpu.mig_pending is not None and gpu.mig_pending != gpu.mig:
            return warned(f"MIG mode will be {'on' if gpu.mig_pending else 'off'} after a reset")
        return passed() if gpu.mig is False or "mig" in gpu.not_supported else None

    return of_gpus(world, judge, fine="MIG mode is off")


def _mode(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        mode = gpu.compute_mode.lower()
        if "prohibited" in mode:
            return failed("compute mode is Prohibited")
        if "exclusive" in mode or mode.startswith("e."):
            return warned(f"compute mode is {gpu.compute_mode}")
        return passed() if mode else None

    return of_gpus(world, judge, fine="compute mode is Default")


def _margin(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        if gpu.margin_c is None:
            return None
        slow = gpu.margin_slow_c or 0
        line = f"{gpu.margin_c} °C of margin left, it slows down at {slow}"
        if gpu.margin_c <= slow:
            return failed(line)
        return warned(line) if gpu.margin_c <= slow + 5 else passed()

    return of_gpus(world, judge, fine="every GPU is more than 5 °C from slowing down")


def _throttled(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        if gpu.licence.startswith("Unlicensed"):
            remedy = "see ServerAddress in /etc/nvidia/gridd.conf, and journalctl -u nvidia-gridd"
            return failed(f"a vGPU without a licence is slow: {gpu.licence}", remedy=remedy)
        if gpu.slowdowns is None:
            return None
        if gpu.slowdowns:
            return failed(f"slowed down by {', '.join(gpu.slowdowns)}")
        return passed()

    return of_gpus(world, judge, fine="no GPU is slowed down by heat or power")


def _link(world: World) -> Seen:
    if torn := _torn(world):
        return failed(*torn)
    bus = world.facts[PciGpus]
    seen = [(named(gpu), one) for gpu in gpus_of(world) if (one := _link_of(gpu))]
    if not seen and isinstance(bus, Known):
        seen = [(gpu.bus_id, one) for gpu in bus.value.gpus or () if (one := _slot(gpu))]
    if seen:
        return worst(seen, "every GPU has its full PCIe width")
    reading = world.facts[Gpus]
    return not_told("PCIe width") if isinstance(reading, Known) else unread(reading)


def _torn(world: World) -> list[str]:
    """Return fatal errors of PCIe (AER) in the log: of a GPU where GPUs tell their addresses."""
    log = world.facts[KernelLog]
    lines = log.value.complaints or () if isinstance(log, Known) else ()
    found = [(m[1], line) for line in lines if (m := _FATAL.search(line))]
    known = [gpu.bus_id for gpu in gpus_of(world) if gpu.bus_id]
    ours = [line for bus, line in found if not known or any(is_same_bus(bus, k) for k in known)]
    return ours[-2:]


_FATAL = re.compile(r"AER: .*Uncorrect\w* \(Fatal\).* ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)")


def _link_of(gpu: Gpu) -> Seen | None:
    return _narrow(gpu.pcie_width, gpu.pcie_width_max)


def _slot(gpu: PciGpu) -> Seen | None:
    return _narrow(gpu.width, gpu.width_max)


def _narrow(width: int | None, top: int | None) -> Seen | None:
    """Judge the width alone: an idle link lowers its generation, never its width."""
    if not width or not top:
        return None
    return failed(f"PCIe width is x{width} of x{top}") if width < top else passed()


def _power(world: World) -> Seen:
    board = world.kind.power_w if world.kind else None

    def judge(gpu: Gpu) -> Seen | None:
        limit = gpu.power_limit_w
        if limit is None:
            return None
        if not 65 <= limit <= 1500:
            return failed(f"power limit {limit:.0f} W is outside 65 to 1500 W")
        if board and limit < board:
            return warned(f"power limit {limit:.0f} W, the board has {board} W")
        return passed()

    return of_gpus(world, judge, fine="power limits are the boards' own")


def _alike(world: World) -> Seen:
    gpus, reading = gpus_of(world), world.facts[Gpus]
    if not isinstance(reading, Known):
        return unread(reading)
    if not gpus:
        return not_told("GPUs")
    if len(gpus) == 1:
        return skipped("one GPU")
    names = sorted({gpu.name for gpu in gpus if gpu.name})
    sizes = sorted({gpu.memory_mib for gpu in gpus if gpu.memory_mib})
    versions = sorted({gpu.vbios for gpu in gpus if gpu.vbios})
    if len(names) > 1:
        return failed(f"boards differ: {', '.join(names)}")
    if len(sizes) > 1 and sizes[-1] - sizes[0] > sizes[-1] // 50:
        return failed(f"memory differs: {', '.join(f'{size} MiB' for size in sizes)}")
    if len(versions) > 1:
        return warned(f"VBIOS differs: {', '.join(versions)}")
    return passed(f"{len(gpus)} × {names[0]}") if names else not_told("names of GPUs")


ROWS: tuple[Row[World], ...] = (
    Row(
        "GPU-08",
        "Persistence mode is on",
        _persistence,
        reason="without it every tool and container start waits for the driver to set GPUs up anew",
        source=GPUD,
        remedy="systemctl enable --now nvidia-persistenced",
    ),
    Row(
        "GPU-12",
        "MIG mode is off",
        _mig,
        reason="a GPU cut into MIG devices has no NVLink peers and not all of its memory",
        source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
        remedy="nvidia-smi -mig 0, then nvidia-smi --gpu-reset (or reboot)",
    ),
    Row(
        "GPU-13",
        "Compute mode is Default",
        _mode,
        reason="an engine starts several processes on a GPU; that exclusive mode hinders them is "
        "our own threshold",
        source=AZURE,
        remedy="nvidia-smi -c 0",
    ),
    Row(
        "GPU-14",
        "GPUs are not close to slowing down",
        _margin,
        reason="a GPU at its limit halves its clocks and holds up all others of its group",
        source=GPUD,
        remedy="check fans, inlet air and the neighbours; drain until it is cool",
        levels=SOFT,
    ),
    Row(
        "GPU-15",
        "No GPU is slowed down",
        _throttled,
        reason="the slowest GPU sets the pace of its group",
        source=AZURE,
        remedy="check power supplies and airflow: nvidia-smi -q -d PERFORMANCE",
        levels=SOFT,
    ),
    Row(
        "GPU-16",
        "PCIe links have full width",
        _link,
        reason="a narrow link slows loading, host cache and network traffic of that GPU",
        source="https://github.com/imbue-ai/cluster-health",
        remedy="drain, reseat the board or its riser, check the BIOS slot setting: "
        "lspci -vv -s BUS",
        levels=SOFT,
    ),
    Row(
        "GPU-17",
        "Power limits are the board's own",
        _power,
        reason="a lowered limit makes one host of a pair slower than the other",
        source=VALIDATION,
        remedy="nvidia-smi -pl WATTS (the board's default stands in nvidia-smi -q -d POWER)",
        levels=SOFT,
    ),
    Row(
        "GPU-18",
        "All GPUs are alike",
        _alike,
        reason="the smallest and slowest board sets the limits of a group",
        source="https://github.com/imbue-ai/cluster-health",
        remedy="flash the same VBIOS, or split the pool by board",
        levels=QUIET,
    ),
)
