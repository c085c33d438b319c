"""JIT-03 to JIT-07: can kernels be compiled where the engine runs, and how long does that take?"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.host import Deployment
from ..core.reading import Known
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..core.version import at_least, version
from ..probes.caches import JitCaches
from ..probes.compilers import Compilers
from ..probes.environment import Environment
from . import where
from .judging import QUIET, not_told, unread
from .toolchain import NOT_YET, driver_cuda, inside, looked_inside, nvcc_of, packages

FEATURES = "https://docs.nvidia.com/cuda/cuda-features-archive/"


def _tools(world: World) -> Mapping[str, bool]:
    if inside(world):
        look = looked_inside(world)
        return look.tools if look else {}
    reading = world.facts[Compilers]
    return reading.value.has if isinstance(reading, Known) else {}


def _chain(world: World) -> Seen:
    if world.deployment is None:
        return skipped("nothing is to be served here")
    has = _tools(world)
    compilers = [has[name] for name in ("gcc", "cc", "clang") if name in has]
    if not compilers and "Python.h" not in has:
        return not_told(NOT_YET if inside(world) else "compilers on the host")
    if compilers and not any(compilers):
        return failed("no gcc, cc or clang: Triton cannot build its launchers")
    if has.get("Python.h") is False:
        return failed("Python's headers are missing: Triton cannot build its launchers")
    missing = [name for name in ("ninja", "g++") if has.get(name) is False]
    if missing and isinstance(nvcc_of(world), Known):
        return warned(f"{' and '.join(missing)} missing: FlashInfer cannot build its kernels")
    return passed(", ".join(sorted(name for name, there in has.items() if there)))


def _three(world: World) -> Seen:
    driver, reading = driver_cuda(world), packages(world)
    torch = reading.value.torch_cuda if isinstance(reading, Known) else ""
    if not driver or version(torch) is None:
        return not_told("the CUDA versions of driver and torch")
    nvcc = nvcc_of(world)
    compiler = nvcc.value.version if isinstance(nvcc, Known) else ""
    line = f"driver up to CUDA {driver}, torch {torch}, nvcc {compiler or 'none'}"
    if _major(driver) < _major(torch):
        return failed(line, "the driver cannot run this torch")
    if at_least(driver, torch) is False:
        return warned(line, "a newer minor release than the driver's: kernels that are compiled "
                      "at start may be refused", level=Level.NOTE)  # fmt: skip
    if compiler and _major(compiler) != _major(torch):
        return warned(line, "nvcc and torch differ in the major release")
    return passed(line)


def _major(text: str) -> int:
    return int(text.partition(".")[0])


def _archs(world: World) -> Seen:
    sort, reading = where.capability(world), packages(world)
    if sort.startswith("12.1") and world.kind is not None and world.kind.form == "unified":
        return warned(
            f"compute capability {sort} needs toolkit 12.9 or later; the ptxas that comes with "
            "Triton may not know it",
            remedy="export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",
        )
    archs = reading.value.torch_archs if isinstance(reading, Known) else None
    if archs is None or not sort:
        return not_told(NOT_YET if inside(world) else "torch's list of architectures")
    code = sort.replace(".", "")
    family = f"{code[:-1]}0f"
    if any(arch in (f"sm_{code}", f"sm_{code}a", f"sm_{code}f", f"sm_{family}") for arch in archs):
        return passed(f"torch has code for sm_{code}: {' '.join(archs)}")
    same = [arch for arch in archs if arch.startswith(f"sm_{code[:-1]}")]
    if same or any(arch.startswith("compute_") for arch in archs):
        return warned(f"torch has {' '.join(archs)}: sm_{code} runs code made for another board")
    return failed(f"torch has {' '.join(archs)}, nothing for sm_{code}")


def _cache(world: World) -> Seen:
    reading = world.facts[JitCaches]
    if not isinstance(reading, Known):
        return unread(reading)
    caches = reading.value
    where_ = f"{caches.folder or 'cache folder'} on {caches.file_system or 'an unknown disk'}"
    if caches.is_network:
        return failed(f"{where_}: hosts overwrite each other's kernels")
    if caches.is_memory:
        return warned(f"{where_}: gone after the next boot", level=Level.NOTE)
    if caches.free_gib is not None and caches.free_gib < 20:
        return warned(f"{caches.free_gib:.0f} GiB free in {where_}", level=Level.NOTE)
    cold = [name for name, warm in sorted(caches.warm.items()) if not warm]
    if cold:
        return warned(f"cold: {', '.join(cold)}; the first start compiles", level=Level.NOTE)
    return passed(f"warm: {', '.join(sorted(caches.warm))}")


LIMIT = "VLLM_ENGINE_READY_TIMEOUT_S"
DEFAULT_S = 600  # vLLM's own default


def _budget(world: World) -> Seen:
    """Compare what a start takes with the limit that is known to stand on the host."""
    if world.deployment is None:
        return skipped("nothing is to be served here")
    need, why = start_seconds(world, world.deployment)
    lines = (f"a start may take {need} s: {'; '.join(why)}",)
    limit = _limit(world)
    outer = where.said(world, "outer_health_limit_s")
    more = []
    if limit is not None and limit < need:
        more.append(f"the limit is {limit} s: set {LIMIT}={need}")
    if isinstance(outer, int | float) and outer < need:
        more.append(f"what restarts the service waits {outer:.0f} s: it must wait longer")
    if more:
        return warned(*lines, *more, remedy=f"ready_timeout_s: {need}")
    if limit is None and not isinstance(world.facts[JitCaches], Known):
        return skipped(f"the plan sets the limit; {lines[0]}")
    return passed(*lines)


def _limit(world: World) -> int | None:
    """Return the limit in force, None where nobody looked: then the plan sets it."""
    own = where.said(world, "ready_timeout_s")
    if isinstance(own, int | float):
        return int(own)
    reading = world.facts[Environment]
    if not isinstance(reading, Known) or world.deployment is None:
        return None
    value = reading.value.values.get(LIMIT, "")
    if value.isdecimal():
        return int(value)
    is_vllm = world.deployment.engine in where.VLLM
    return DEFAULT_S if is_vllm and reading.value.is_unset(LIMIT) else None


def start_seconds(world: World, deployment: Deployment) -> tuple[int, tuple[str, ...]]:
    """Return how long an honest first start may take in seconds, and why."""
    told: list[tuple[int, str]] = [(DEFAULT_S, "the engine's own default")]
    reading = world.facts[JitCaches]
    warm = (
        isinstance(reading, Known) and bool(reading.value.warm) and all(reading.value.warm.values())
    )
    if not warm and where.number(world, "data_parallel", 1) > 1:
        told.append((1800, "cold caches, several engine cores compile at once"))
    if not warm and where.is_blackwell(world):
        told.append((1800, "cold caches on Blackwell"))
    if where.is_kimi_k3(deployment) or (deployment.model.weights_gib or 0) >= 1000:
        told.append((3600, "about 25 minutes for a model of this size"))
    most = max(seconds for seconds, _ in told)
    return most, tuple(why for seconds, why in told if seconds == most)


ROWS: tuple[Row[World], ...] = (
    Row(
        "JIT-03",
        "C compiler, headers and ninja are there",
        _chain,
        reason="Triton builds a small C program at start, so without a C compiler and Python's "
        "headers even the fallback fails",
        source="https://github.com/vllm-project/vllm/issues/21960",
        remedy="apt-get install build-essential python3-dev ninja-build, where the engine runs",
    ),
    Row(
        "JIT-04",
        "Driver, torch and nvcc agree on CUDA",
        _three,
        reason="the driver must run torch's CUDA; the toolkit compiles with its own headers",
        source="https://docs.nvidia.com/deploy/cuda-compatibility/",
        remedy="upgrade the driver, or take an image built for an older CUDA",
    ),
    Row(
        "JIT-05",
        "torch has code for these GPUs",
        _archs,
        reason="without code for the board the first kernel fails",
        source=FEATURES,
        remedy="take an image built for CUDA 13.0 (cu130)",
    ),
    Row(
        "JIT-06",
        "Compiled kernels are kept",
        _cache,
        reason="a warm cache on a local disk shortens the second start from minutes to seconds; "
        "20 GiB of room is our own figure",
        source="2×B200 report",
        remedy="cache_folder: a folder of this host on a local disk",
        levels=QUIET,
    ),
    Row(
        "JIT-07",
        "The start is given enough time",
        _budget,
        reason="a first start that is cut off starts again from nothing; the variable does not "
        "bound every wait, so the outer limit counts as well",
        source="https://github.com/vllm-project/vllm/issues/48031",
    ),
)
