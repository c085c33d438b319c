"""Kernel, memory, limits, processors: read from files, in three answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.reading import Absent, Known, Unknown
from bringup.core.script import Section
from bringup.probes import kernel, memory, system
from bringup.probes.system import Kernels, Limits, Processors, Stuck
from bringup.probes.text import UNLIMITED, limit, size_of, version

PROBES = (*kernel.PROBES, *memory.PROBES, *system.PROBES)


def section(text: str, rc: int = 0) -> Section:
    return Section("x", rc, text)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
@given(
    text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n\0:")).filter(
        lambda text: not text.startswith("end\t")  # that is an answer: there is nothing to tell
    )
)
def test_garbage_is_unknown(probe: object, text: str) -> None:
    assert isinstance(probe.parse(section(text)), Unknown)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("ranges", "size"),
    [("0-55,112-167", 112), ("0", 1), ("", None), ("N/A", None), ("0-", None), ("3,5-6", 3)],
)
def test_kernel_lists_are_counted(ranges: str, size: int | None) -> None:
    assert size_of(ranges) == size


@pytest.mark.parametrize(
    ("word", "value"), [("unlimited", UNLIMITED), ("64", 64), ("8192", 8192), ("[N/A]", None)]
)
def test_a_limit_is_a_number_only_when_it_is_one(word: str, value: int | None) -> None:
    assert limit(word) == value


def test_versions_compare_by_number() -> None:
    assert version("NVIDIA Container Toolkit CLI version 1.17.5") < version("1.17.8")
    assert version("1.9.0") < version("1.18.0-rc.1")


def test_meminfo_keeps_huge_pages_apart() -> None:
    text = "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\nSwapTotal: 0 kB\n"
    text += "HugePages_Total:     512\nHugepagesize:       2048 kB\n"
    found = memory.PROBE.parse(section(text))
    assert isinstance(found, Known)
    assert found.value == memory.Memory(2048, 1024, 0, 1024)


def test_processors_tell_offline_ones_swap_and_governors() -> None:
    text = (
        "online\t0-126\npresent\t0-127\nnodes\t0-1\nbalancing\t1\ngovernor\tpowersave\n"
        "swap\tFilename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "swap\t/swap.img                               file\t\t8388604\t\t0\t\t-2\n"
    )
    found = system.parse_processors(section(text))
    assert isinstance(found, Known)
    assert found.value == Processors(127, 128, 2, ("powersave",), True, 8388604)


def test_limits_of_login_and_daemon_are_kept_apart() -> None:
    line = "Max locked memory         8388608              unlimited            bytes     \n"
    text = f"login\t{line}engine\tMax open files            1048576              1048576    files\n"
    found = system.parse_limits(section(text))
    assert isinstance(found, Known)
    assert found.value == Limits(memlock=8388608, engine={"files": 1048576})


def test_stuck_processes_are_named() -> None:
    found = system.parse_stuck(section("stuck\t4711\tnvidia-smi\nend\tof processes\n"))
    assert isinstance(found, Known)
    assert found.value == Stuck(("nvidia-smi (4711)",))


def test_the_next_kernel_is_the_newest_by_number() -> None:
    text = "running\t6.8.0-90-generic\nkernel\t6.8.0-90-generic\tnvidia\n"
    text += "kernel\t6.8.0-101-generic\t\nend\tkernels\n"
    found = system.parse_kernels(section(text))
    assert isinstance(found, Known)
    assert found.value.next == "6.8.0-101-generic"
    assert found.value == Kernels(
        "6.8.0-90-generic", {"6.8.0-90-generic": True, "6.8.0-101-generic": False}
    )


def test_no_edac_is_absent_not_zero_errors() -> None:
    text = "absent: the kernel counts no memory errors (no EDAC)\n"
    assert isinstance(memory.parse_errors(section(text, 3)), Absent)


def test_modules_built_in_count_as_there() -> None:
    text = "mlx5_core 2510848 0 - Live 0x0\npresent\tib_core\nend\tof modules\n"
    found = kernel.parse_modules(section(text))
    assert isinstance(found, Known)
    assert "mlx5_core" in found.value
    assert "ib_core" in found.value
    assert "mlx5_ib" not in found.value
