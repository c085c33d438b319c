"""Compilers, Python packages and driver libraries of a practice host."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as packaged

from .hardware import Hardware
from .software import Toolkit
from .tree import Entry, File, Link, Tree, tool

PYTHON = "/usr/lib/lab/python3"
NETWORK = "usr/lib/lab/python3/network.json"
"""Where on loopback the practice network is; written once the server's ports are known."""

_BUILDS = {
    "12.8": ("Fri_Feb_21_20:23:50_PST_2025", "93", "35583870"),
    "13.0": ("Wed_Aug_20_01:58:59_PM_PDT_2025", "88", "36424714"),
}
"""When a toolkit's compiler was built, its patch number and build number, where one was seen."""


def files(hardware: Hardware) -> Tree:
    """Return toolkits, packages, and the driver's own libraries."""
    return dict(_entries(hardware))


def _entries(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    for toolkit in hardware.toolkits:
        yield f"{toolkit.path}/bin/nvcc", tool(f"#!/bin/sh\ncat <<'TEXT'\n{_nvcc(toolkit)}TEXT\n")
        if toolkit is hardware.toolkits[-1] and toolkit.path != "/usr/local/cuda":
            yield "/usr/local/cuda", Link(toolkit.path.rpartition("/")[2])
    for name, version in hardware.packages.items():
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        folder = name.replace("-", "_")
        yield f"{PYTHON}/{folder}-{version}.dist-info/METADATA", File(head)
        if name == "torch":
            cuda = version.partition("+cu")[2]
            text = f"__version__ = '{version}'\ncuda: str = '{cuda[:-1]}.{cuda[-1:]}'\n"
            yield f"{PYTHON}/torch/version.py", File(text)
    for name in hardware.programs:
        text = f"#!/bin/sh\necho '{name}: only a stand-in on a practice host' >&2\nexit 1\n"
        yield f"/usr/bin/{name}", tool(text)
    if hardware.python_headers:
        yield "/usr/include/python3.12/Python.h", File("")
    yield f"{PYTHON}/socket.py", File(_shim("socket"))
    if hardware.driver:
        yield from _libraries(hardware)


def _nvcc(toolkit: Toolkit) -> str:
    """Return `nvcc --version` of a toolkit."""
    built, patch, build = _BUILDS.get(toolkit.version, ("Mon_Jan__5_10:00:00_UTC_2026", "0", "0"))
    return (
        "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\n"
        f"Built on {built}\n"
        f"Cuda compilation tools, release {toolkit.version}, V{toolkit.version}.{patch}\n"
        f"Build cuda_{toolkit.version}.r{toolkit.version}/compiler.{build}_0\n"
    )


def _libraries(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    """The driver's libraries on disk, and the answer of cuInit for the stand-in of Python."""
    assert hardware.driver
    version = hardware.driver.library or hardware.driver.version
    for name in ("libcuda", "libnvidia-ml"):
        folder = "/usr/lib/x86_64-linux-gnu"
        yield f"{folder}/{name}.so.{version}", File("")
        yield f"{folder}/{name}.so.1", Link(f"{name}.so.{version}")
    state = hardware.gpus.values.get("fabric_state", "N/A") if hardware.gpus else "N/A"
    code = 802 if state not in ("Completed", "N/A") else 0
    yield f"{PYTHON}/cuda", File(f"{code} {len(hardware.slots)}\n")
    yield f"{PYTHON}/ctypes/__init__.py", File(_shim("ctypes"))


def _shim(name: str) -> str:
    """Return the module that stands before one of Python's own on a practice host."""
    return packaged(__package__).joinpath("tools", "python3", f"{name}.txt").read_text()
