"""Compilers, packages and CUDA versions at the place where the engine runs."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.reading import Known, Reading, Unknown
from ..core.rules import World
from ..core.version import version
from ..probes.gpu import Gpus
from ..probes.inside import Inside
from ..probes.packages import PythonPackages
from ..probes.toolkit import Nvcc
from . import where
from .checks_gpu_driver import driver_version

FLOORS: Mapping[str, str] = {
    "8.0": "11.0", "8.6": "11.1", "8.9": "11.8", "9.0": "11.8", "10.0": "12.8", "10.3": "12.9",
    "12.0": "12.8", "12.1": "12.9",
}  # fmt: skip
"""Oldest toolkit that compiles for a compute capability (CUDA features archive)."""

BRANCHES: tuple[tuple[int, str], ...] = (
    (610, "13.3"), (595, "13.2"), (590, "13.1"), (580, "13.0"), (575, "12.9"), (570, "12.8"),
    (565, "12.7"), (560, "12.6"), (555, "12.5"), (550, "12.4"), (545, "12.3"), (535, "12.2"),
    (525, "12.0"), (520, "11.8"),
)  # fmt: skip
"""Newest CUDA of each driver branch, where nvidia-smi's banner was not read."""

NOT_YET = "asked once the image is on the host"


def inside(world: World) -> bool:
    """Tell whether the engine runs in a container, so that the host's own tools do not count."""
    return world.deployment is not None and world.deployment.in_container


def looked_inside(world: World) -> Inside | None:
    reading = world.facts[Inside]
    return reading.value if isinstance(reading, Known) else None


def nvcc_of(world: World) -> Reading[Nvcc]:
    """Return nvcc at the place where the engine runs: seen inside, promised, or the host's."""
    look = looked_inside(world)
    if inside(world) and look is not None and not isinstance(look.nvcc, Unknown):
        return look.nvcc
    reading = where.where_engine_runs(world)
    if inside(world) and isinstance(reading, Unknown):
        return Unknown(NOT_YET, reading.evidence)
    return reading


def floor_of(world: World) -> str:
    """Return the oldest toolkit for these GPUs, "" where their capability is not known."""
    own = world.kind.toolkit_floor if world.kind else ""
    return FLOORS.get(where.capability(world), "") or own


def packages(world: World) -> Reading[PythonPackages]:
    """Return Python packages where the engine runs.

    The host's own interpreter says nothing of a virtual environment unless torch is in it.
    """
    if inside(world):
        look = looked_inside(world)
        if look is None or not (look.packages or look.torch_cuda or look.torch_archs):
            return Unknown(NOT_YET)
        return Known(PythonPackages(look.packages, look.missing_packages, look.torch_cuda,
                                    look.torch_archs))  # fmt: skip
    reading = world.facts[PythonPackages]
    if isinstance(reading, Known) and not _is_engines(reading.value):
        return Unknown("the engine's environment was not looked at")
    return reading


def _is_engines(packages: PythonPackages) -> bool:
    """Tell whether this is an engine's environment: torch or an engine is in it."""
    named = {"torch", "vllm", "sglang"} & set(packages.versions)
    return bool(named or packages.torch_cuda or packages.torch_archs)


def driver_cuda(world: World) -> str:
    """Return the newest CUDA that the driver runs, by its own word or by its branch."""
    reading = world.facts[Gpus]
    own = reading.value.cuda if isinstance(reading, Known) else ""
    branch = driver_version(world).partition(".")[0]
    if version(own) is not None or not branch.isdecimal():
        return own if version(own) is not None else ""
    return next((cuda for number, cuda in BRANCHES if int(branch) >= number), "")
