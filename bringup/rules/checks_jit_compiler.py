"""JIT-01 and JIT-02: is there a compiler that knows the GPUs, or are prebuilt kernels there?"""

from __future__ import annotations

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, skipped, warned
from ..core.version import at_least
from ..probes.toolkit import Nvcc
from . import where
from .judging import SOFT
from .toolchain import driver_cuda, floor_of, nvcc_of, packages

FEATURES = "https://docs.nvidia.com/cuda/cuda-features-archive/"
FLASHINFER = "https://docs.flashinfer.ai/installation.html"


def _nvcc(world: World) -> Seen:
    reading = nvcc_of(world)
    if isinstance(reading, Unknown):
        return Seen(Status.UNKNOWN, (f"unknown: {reading.why}",), level=Level.NOTE)
    floor, sort = floor_of(world), where.capability(world)
    fits = f"; {cuda} fits this driver" if (cuda := driver_cuda(world)) else ""
    install = (
        f"install CUDA toolkit {floor or ''} or later (the toolkit package alone{fits}) where the "
        "engine runs, or take an image that has it"
    )
    if isinstance(reading, Absent):
        line = reading.evidence or "no nvcc in PATH, CUDA_HOME, default prefixes"
        return _without(world, line, install)
    where_ = f" ({reading.value.path})" if reading.value.path else ""
    line = f"nvcc {reading.value.full or reading.value.version}{where_}"
    if not floor:
        return passed(line)
    if at_least(reading.value.version, floor) is False:
        if chosen := where.chosen_nvcc(world, reading.value, floor):
            return passed(f"CUDA_HOME leads to nvcc {chosen.full}, before {line}")
        if fitting := _fitting(reading.value, floor):
            return _beside(world, line, fitting)
        return _without(world, f"{line}: compute capability {sort or '?'} needs {floor}", install)
    return passed(f"{line}, compute capability {sort or '?'} needs {floor}")


def _fitting(nvcc: Nvcc, floor: str) -> str:
    """Return the home of another compiler on the host that knows these GPUs, "" for none."""
    pairs = (other.rpartition(" ") for other in nvcc.others)
    fits = (path for path, _, number in pairs if at_least(number, floor))
    return next((path.removesuffix("/bin/nvcc") for path in fits), "")


def _beside(world: World, line: str, home: str) -> Seen:
    """Judge an old compiler in PATH beside a fitting one that CUDA_HOME does not lead to."""
    told = f"{line}, too old; {home} fits, and is not the one in use"
    return _without(world, told, f"export CUDA_HOME={home} PATH={home}/bin:$PATH")


def _without(world: World, line: str, remedy: str) -> Seen:
    if world.deployment is None:
        return warned(line, "a container brings its own: only the place of the engine counts",
                      level=Level.NOTE, remedy=remedy)  # fmt: skip
    if where.is_kimi_k3(world.deployment):
        return failed(line, "Kimi K3 has no way around run-time compilation", remedy=remedy)
    if _prebuilt(world) is True:
        return warned(line, "FlashInfer's prebuilt kernels cover for it", level=Level.NOTE,
                      remedy=remedy)  # fmt: skip
    return warned(line, "fallback: Triton attention, FlashInfer sampler off", remedy=remedy)


PARTS = ("flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache")


def _prebuilt(world: World) -> bool | None:
    """Tell whether all prebuilt parts of FlashInfer are there in one version."""
    if world.deployment is not None and world.deployment.image.flashinfer == "prebuilt":
        return True
    reading = packages(world)
    if not isinstance(reading, Known):
        return None
    found = [reading.value.versions.get(part, "") for part in PARTS]
    return bool(found[0]) and all(_release(each) == _release(found[0]) for each in found)


def _release(text: str) -> str:
    return text.partition("+")[0]


def _flashinfer(world: World) -> Seen:
    reading = packages(world)
    if isinstance(reading, Absent):
        return skipped("no Python packages here")
    if isinstance(reading, Unknown):
        return Seen(Status.UNKNOWN, (f"unknown: {reading.why}",), level=Level.NOTE)
    have = {part: reading.value.versions[part] for part in PARTS if part in reading.value.versions}
    if PARTS[0] not in have:
        return skipped("flashinfer-python is not installed")
    shown = ", ".join(f"{name} {number}" for name, number in have.items())
    if len({_release(number) for number in have.values()}) > 1:
        return failed(shown)
    if len(have) == len(PARTS):
        return passed(shown)
    return warned(f"{shown}; no prebuilt kernels beside it" if len(have) == 1 else shown,
                  level=Level.NOTE)  # fmt: skip


ROWS: tuple[Row[World], ...] = (
    Row(
        "JIT-01",
        "A CUDA compiler is where the engine runs",
        _nvcc,
        reason="FlashInfer, DeepGEMM and others compile on first use; a compiler that does not "
        "know the board is as good as none",
        source=FEATURES,
        follow_up="with a fitting toolkit the faster kernels come back",
    ),
    Row(
        "JIT-02",
        "FlashInfer's prebuilt kernels match",
        _flashinfer,
        reason="prebuilt kernels of the exact version replace the compiler; of another version "
        "FlashInfer refuses to load",
        source=FLASHINFER,
        remedy="pip install flashinfer-python==V flashinfer-cubin==V flashinfer-jit-cache==V "
        "(one version, the last from FlashInfer's own index)",
        levels=SOFT,
    ),
)
