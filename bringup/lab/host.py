"""All files of one practice host, from its description."""

from __future__ import annotations

from importlib.resources import files

from . import smi, sysfs, system
from .hardware import Hardware
from .tree import Tree, tool


def tree(hardware: Hardware) -> Tree:
    """Return every file, link and folder of the host, by its path there."""
    return {**system.files(hardware), **sysfs.files(hardware), **_gpu_tools(hardware)}


def script(name: str) -> str:
    """Return the text of a stand-in tool."""
    return files(__package__).joinpath("tools", f"{name}.sh").read_text()


def _gpu_tools(hardware: Hardware) -> Tree:
    found = smi.data(hardware)
    return {**found, "/usr/bin/nvidia-smi": tool(script("nvidia-smi"))} if found else {}
