"""A GPU host's hardware laid over a whole test host: real OpenSSH, apt, dpkg and systemd below.

What kernel and driver tell comes from a description of the practice fleet: /sys is a tmpfs with the
host's own control groups in it, /proc/driver another, and tools that change hardware are stand-ins
that change those files.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from bringup.lab import smi, sysfs, toolkit
from bringup.lab.describe import describe
from bringup.lab.hardware import Hardware
from bringup.lab.host import script
from bringup.lab.tree import Entry, File, settle, tool

from ..fleet.yard import FleetHost

TOOLS = Path(__file__).parent / "tools"
DRIVER = "580.126.09"
ON_DISK = ("nvidia_uvm", "nvidia_peermem", "mlx5_ib", "ib_core", "ib_uverbs", "ib_umad",
           "rdma_cm", "rdma_ucm")  # fmt: skip


def driver_only() -> Hardware:
    """Return eight B300 with their driver, and nothing else done for them."""
    (whole,) = describe(["b300-04"])
    assert whole.driver is not None
    assert whole.gpus is not None
    return replace(
        whole,
        driver=replace(whole.driver, version=DRIVER, persistence=False),
        gpus=replace(whole.gpus, values={"fabric_state": "In Progress", "fabric_status": "N/A"}),
        cpu=replace(whole.cpu, governor="powersave"),
        modules=("nvidia", "nvidia_modeset", "nvidia_drm", "mlx5_core"),
        modules_on_disk=ON_DISK,
        fabric_manager=None, docker=None, slurm=None, units={}, models=(),
    )  # fmt: skip


# Real nodes, since a link to /dev/null is no NVIDIA device; nothing opens them.
LAY = r"""
set -eu
from=/run/hardware
mkdir "$from"
tar -xf - -C "$from"
mkdir -p "$from/sys/fs/cgroup"
rm -f "$from/sys/fs/cgroup/cgroup.controllers"
mv "$from/sys/class/infiniband" "$from/sys/class/.infiniband"
for module in $2; do rm -r "$from/sys/module/$module"; done
for module in "$from"/sys/module/*; do echo 0 >"$module/refcnt"; done
mount --rbind /sys/fs/cgroup "$from/sys/fs/cgroup"
mount --rbind "$from/sys" /sys
mount --bind "$from/proc/driver" /proc/driver
mount --bind "$from/proc/numa_balancing" /proc/sys/kernel/numa_balancing
n=0
while [ -e "$from/dev/nvidia$n" ]; do mknod -m 666 "/dev/nvidia$n" c 195 "$n"; n=$((n + 1)); done
mknod -m 666 /dev/nvidiactl c 195 255
mkdir -p "/lib/modules/$(uname -r)"
for name in $1 $2; do echo "kernel/$name.ko:"; done >"/lib/modules/$(uname -r)/modules.dep"
cp -a "$from/usr/." /usr/
mv /usr/sbin/modprobe /usr/sbin/modprobe.real 2>/dev/null || :
mv /usr/bin/nvidia-smi /usr/bin/nvidia-smi.lab
sed -i 's|^data=.*|data=/usr/lib/lab/nvidia-smi|' /usr/bin/nvidia-smi.lab
cp "$from/tools/modprobe" /usr/sbin/
cp "$from/tools/nvidia-"* /usr/bin/
cp "$from/tools/python3" "$from/tools/dmesg" /usr/local/bin/
"""
MOVED = ("nvidia_uvm", "mlx5_ib", "ib_uverbs", "ib_umad", "rdma_ucm")
"""Modules whose nodes and folders come and go with them."""


def clothe(host: FleetHost, hardware: Hardware) -> None:
    """Lay described hardware over a host."""
    every = (*hardware.modules, *hardware.modules_on_disk)
    later = (*hardware.modules_on_disk, *MOVED)
    now = (module for module in every if module not in later)
    words = (" ".join(now), " ".join(dict.fromkeys(later)))
    host.exec("sh", "-c", LAY, "sh", *words, stdin=_packed(replace(hardware, modules=every)))
    for module in hardware.modules:
        host.exec("modprobe", module)


def _packed(hardware: Hardware) -> bytes:
    seen: dict[str, Entry] = {**sysfs.files(hardware), **smi.data(hardware)}
    libraries = toolkit.files(replace(hardware, toolkits=(), packages={}, programs=()))
    seen |= {p: e for p, e in libraries.items() if p.startswith("/usr/lib/x86_64-linux-gnu/")}
    seen["/usr/bin/nvidia-smi"] = tool(script("nvidia-smi"))
    seen["/proc/numa_balancing"] = File("1\n")
    for name in ("modprobe", "nvidia-smi", "nvidia-modprobe", "python3", "dmesg"):
        seen[f"/tools/{name}"] = tool((TOOLS / name).read_text())
    with tempfile.TemporaryDirectory() as folder:
        settle(Path(folder), seen)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
        return packed.getvalue()
