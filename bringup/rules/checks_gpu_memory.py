"""GPU-09 to GPU-11: does the memory of each GPU hold, and does one ask to be reset?"""

from __future__ import annotations

from ..core.reading import Known
from ..core.rules import Level, Row, Seen, World, failed, passed, warned
from ..probes.diagnosis import Diagnosis
from ..probes.gpu import Gpu, is_fault
from ..probes.kernel_log import KernelLog
from .judging import gpus_of, loss, of_gpus

AZURE = "https://github.com/Azure/azurehpc-health-checks"
RESET = (
    "stop what uses the GPU, then nvidia-smi --gpu-reset -i INDEX "
    "(all GPUs of an NVSwitch board at once)"
)

CORRECTED = 20_000_000  # Azure's limit for corrected errors
MEMORY_XIDS = (48, 64, 94, 95)


def broken(world: World, gpu: Gpu) -> Level:
    """Judge one broken GPU together with all others that are broken in any way."""
    bad = {g.index for g in gpus_of(world) if _is_broken(g)} | {gpu.index}
    return loss(world, bad)


def _is_broken(gpu: Gpu) -> bool:
    return bool(
        gpu.ecc_uncorrected or gpu.remap_failed or gpu.sram_threshold_exceeded
        or gpu.unrepairable_memory or _needs_reset(gpu) or gpu.mig
        or gpu.recovery_action not in ("", "None")
    )  # fmt: skip


def _needs_reset(gpu: Gpu) -> str:
    return next((w for w in gpu.unreadable.values() if "requires reset" in w), "")


def _ecc(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        if gpu.ecc_uncorrected:
            line = f"{gpu.ecc_uncorrected} uncorrected memory errors since the driver was loaded"
            return failed(line, level=broken(world, gpu))
        if gpu.sram_threshold_exceeded:
            return failed("SRAM error threshold exceeded", level=broken(world, gpu))
        if gpu.ecc_uncorrected_aggregate:
            return warned(f"{gpu.ecc_uncorrected_aggregate} uncorrected memory errors in its life")
        if gpu.ecc_corrected and gpu.ecc_corrected > CORRECTED:
            return warned(f"{gpu.ecc_corrected} corrected memory errors")
        if gpu.ecc is False:
            return warned("ECC is off")
        return None if gpu.ecc_uncorrected is None and gpu.ecc is None else passed()

    return of_gpus(world, judge, fine="ECC counts no uncorrected error")


def _rows(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        history = f"{gpu.remapped_uncorrectable} rows remapped for uncorrectable errors"
        more = (history,) if gpu.remapped_uncorrectable else ()
        if gpu.remap_failed or gpu.unrepairable_memory:
            line = "a row remap failed" if gpu.remap_failed else "memory cannot be repaired"
            return failed(line, *more, level=broken(world, gpu), remedy=REPLACE)
        if gpu.remap_pending or gpu.repair_pending:
            return _pending(world, gpu, more)
        if gpu.remapped_uncorrectable:
            return warned(history, level=Level.NOTE)
        return None if gpu.remap_pending is None else passed()

    return of_gpus(world, judge, fine="no row remap and no repair is pending")


REPLACE = "drain the host and have the board replaced"


def _pending(world: World, gpu: Gpu, more: tuple[str, ...]) -> Seen:
    """A pending remap is a warning; after a memory error or a demand for reset it is a failure."""
    line = "a row remap is pending" if gpu.remap_pending else "a repair is pending"
    if reset := _needs_reset(gpu):
        return failed(f"{line}, fields read {reset}", *more, level=broken(world, gpu))
    log = world.facts[KernelLog]
    xids = log.value.xids or () if isinstance(log, Known) else ()
    hurt = [x for x in xids if x.code in MEMORY_XIDS and is_same_bus(x.bus_id, gpu.bus_id)]
    if hurt:
        return failed(line, hurt[-1].line, *more, level=broken(world, gpu))
    return warned(line, *more)


def is_same_bus(one: str, other: str) -> bool:
    """Compare PCI addresses of the kernel (0000:ae:00) and of NVML (00000000:AE:00.0)."""

    def bare(address: str) -> tuple[int, ...]:
        parts = address.partition(".")[0].split(":")
        try:
            return tuple(int(part, 16) for part in parts)
        except ValueError:
            return ()

    return bool(bare(one)) and bare(one) == bare(other)


def _recovery(world: World) -> Seen:
    def judge(gpu: Gpu) -> Seen | None:
        if reset := _needs_reset(gpu):
            return failed(f"fields read {reset}", level=broken(world, gpu))
        if sick := [f"{k} reads {w}" for k, w in gpu.unreadable.items() if is_fault(w)]:
            return warned(*sick[:2])
        if gpu.recovery_action == "":
            return None
        if gpu.recovery_action == "None":
            return passed()
        return failed(f"asks for: {gpu.recovery_action}", level=broken(world, gpu))

    return _diagnosed(world) or of_gpus(world, judge, fine="no GPU asks for a recovery")


def _diagnosed(world: World) -> Seen | None:
    """Judge what DCGM found, where somebody ran it."""
    reading = world.facts[Diagnosis]
    if not isinstance(reading, Known):
        return None
    remedy = "drain; dcgmi diag -r 3 for details; reset or replace the GPU that it names"
    if reading.value.failed:
        return failed(*reading.value.failed[:3], remedy=remedy)
    return warned(*reading.value.warned[:3], remedy=remedy) if reading.value.warned else None


ROWS: tuple[Row[World], ...] = (
    Row(
        "GPU-09",
        "No uncorrected memory errors",
        _ecc,
        reason="a job that meets an uncorrected error dies or computes wrongly",
        source=AZURE,
        remedy=f"{RESET}; if errors come back, have the board replaced",
    ),
    Row(
        "GPU-10",
        "No row remap or repair waits",
        _rows,
        reason="a marked row is replaced at the next reset only; until then jobs may die "
        "on it again",
        source="https://github.com/leptonai/gpud/pull/80",
        remedy=f"{RESET}; then see that nvidia-smi -q -d ROW_REMAPPER says Pending: No",
    ),
    Row(
        "GPU-11",
        "No GPU asks for recovery",
        _recovery,
        reason="the driver itself says what the GPU needs before it can be used",
        source="https://docs.nvidia.com/deploy/xid-errors/",
        remedy=RESET,
    ),
)
