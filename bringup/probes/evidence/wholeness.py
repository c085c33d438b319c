"""Whether a command lists every RDMA device, so that one that it leaves out is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .asked import Asked, Output
from .loops import loop_of


class AllDevices:
    """That some command listed every RDMA device."""


_LINES: Mapping[str, str] = {
    "ibstat": "CA 'mlx5_99'",
    "ibstatus": "Infiniband device 'mlx5_99' port 1 status:",
    "ibv_devinfo": "hca_id:\tmlx5_99",
    "ibv_devices": "    mlx5_99         \t0000000000000099",
    "rdma": "link mlx5_99/1 state DOWN physical_state DISABLED netdev eth9",
    "ibdev2netdev": "mlx5_99 port 1 ==> eth9 (Down)",
    "ls": "mlx5_99",
    "cat": "1: DOWN",
    "for": "mlx5_99",
    "nvidia-smi": "NIC9: mlx5_99",
}
"""A line for a device that is down, as each command prints it: a whole list lets it through."""


def lists_all(asked: Asked, output: Output) -> bool:
    """Tell whether the command asks for all devices, and no filter takes some of them away."""
    line = _LINES.get(asked.program)
    if line is None or asked.is_partial(output) or not asked.matches(line):
        return False
    loop = loop_of(asked.words[0]) if asked.program == "for" else None
    return _asks_for_all(asked) and not (loop and loop.is_filtered)


def _asks_for_all(asked: Asked) -> bool:
    words = " ".join(asked.words)
    if asked.program in ("cat", "for"):
        return bool(re.search(r"/sys/class/infiniband(?:/(?:mlx5_)?\*|\))", words))
    if asked.program == "ls":
        return bool(re.search(r"/sys/class/infiniband/?(?:/(?:mlx5_)?\*.*)?$", asked.path))
    if asked.program == "rdma":
        return asked.path in ("link", "show") or not re.search(r"\w+/\d", words)
    if asked.program == "nvidia-smi":
        return asked.has("topo")
    return not asked.has("-d", "--ib-dev") and not re.search(r"[a-z]\w*_\d", words)
