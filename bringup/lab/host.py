"""All files of one practice host, from its description."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from . import container, services, smi, sysfs, system, toolkit
from .hardware import Faults, Hardware
from .tree import File, Link, Tree, tool

ALWAYS = (
    "uname",
    "hostname",
    "python3",
    "df",
    "stat",
    "nproc",
    "dmesg",
    "lsmod",
    "lspci",
    "getent",
)
"""Tools that every host has; the others depend on the description."""


def tree(hardware: Hardware) -> Tree:
    """Return every file, link and folder of the host, by its path there."""
    whole = {
        **system.files(hardware),
        **sysfs.files(hardware),
        **smi.data(hardware),
        **services.files(hardware),
        **container.files(hardware),
        **toolkit.files(hardware),
        "/usr/lib/lab/sudo/rule": File(f"{hardware.sudo}\n"),
        **{f"/usr/bin/{name}": tool(script(name)) for name in _tools(hardware)},
    }
    if hardware.docker and hardware.docker.toolkit:
        whole["/usr/lib/lab/nvidia-ctk/version"] = File(_toolkit_version(hardware.docker.toolkit))
    return _sickened(whole, hardware.faults)


def script(name: str) -> str:
    """Return the text of a stand-in tool."""
    return files(__package__).joinpath("tools", f"{name}.sh").read_text()


def _tools(hardware: Hardware) -> Iterator[str]:
    yield from ALWAYS
    wanted = {
        "nvidia-smi": hardware.driver and hardware.gpus,
        "docker": hardware.docker,
        "nvidia-ctk": hardware.docker and hardware.docker.toolkit,
        "systemctl": hardware.units,
        "journalctl": hardware.units,
        "timedatectl": hardware.units,
        "chronyc": "chrony" in hardware.units,
        "nv-fabricmanager": hardware.fabric_manager,
        "ibstat": hardware.ports and "mlx5_ib" in hardware.modules,
        "scontrol": hardware.slurm,
        "squeue": hardware.slurm,
        "sudo": hardware.sudo != "absent",
    }
    yield from (name for name, is_there in wanted.items() if is_there)


def _toolkit_version(version: str) -> str:
    return f"NVIDIA Container Toolkit CLI version {version}\ncommit: {'0' * 40}\n"


def _sickened(whole: Tree, faults: Faults) -> Tree:
    """Return the host's files with its faults in them."""
    sick = dict(whole)
    for name, seconds in faults.slow_s.items():
        usual = sick.get(f"/usr/bin/{name}")
        if isinstance(usual, File):
            first, _, rest = usual.data.decode().partition("\n")
            sick[f"/usr/bin/{name}"] = tool(f"{first}\nsleep {seconds}\n{rest}")
    for name in faults.hang:
        sick[f"/usr/bin/{name}"] = tool("#!/bin/sh\nexec sleep 86400\n")
    for name, said in faults.say.items():
        text = f"#!/bin/sh\ncat <<'TEXT'\n{said.text.rstrip()}\nTEXT\nexit {said.exit}\n"
        sick[f"/usr/bin/{name}"] = tool(text)
    for name in faults.missing:
        sick.pop(f"/usr/bin/{name}", None)
    for folder in faults.read_only:
        sick = {
            path: entry for path, entry in sick.items() if not f"{path}/".startswith(f"{folder}/")
        }
        sick[folder] = Link("/sys/kernel")  # where nobody may write, root included
    return sick
