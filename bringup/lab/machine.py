"""The programs of this machine that practice hosts may use: all but those that know hardware.

A practice host has its own `nvidia-smi` and `docker`, or has none; it must never reach this
machine's. So its PATH ends in one folder of links to the programs that are safe to share.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

HIDDEN = re.compile(
    r"""
    nvidia | nv-fabric | nvcc | nvdisasm | ptxas | cuda | dcgm            # GPUs
    | docker | podman | buildah | skopeo | nerdctl | ctr$ | crictl | containerd | runc | crun
    | ib(stat|v_|_|dev|netdisc|link|addr) | rdma | ucx_ | mlx | mst | perfquery | show_gids | opensm
    | systemctl | service$ | journalctl | timedatectl | hostnamectl | loginctl | chronyc | systemd
    | scontrol | s(queue|info|batch|run|cancel|acct)$ | slurm              # schedulers
    | su$ | sudo | doas | pkexec | reboot | shutdown | poweroff | halt | init$ | telinit | kexec
    | modprobe | insmod | rmmod | modinfo | lsmod | depmod | lspci | lsusb | dmidecode | dmesg
    | apt | dpkg | yum | dnf | rpm | snap | mount$ | umount$ | mkfs | fdisk | lsblk
    | lscpu | lsmem | lstopo | hwloc | numactl | free$ | nproc | vmstat
    | getent | lsipc
    | etcd | nats | ifconfig | ip$ | ss$ | netstat | iptables | nft | ethtool | sysctl
    """,
    re.VERBOSE,
)


def share(folder: Path) -> None:
    """Make `folder` hold one link for each program of this machine that practice hosts may use."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = programs(FOLDERS)
    present = {entry.name for entry in os.scandir(folder)}
    for name in present - wanted.keys():
        (folder / name).unlink()
    for name in wanted.keys() - present:
        (folder / name).symlink_to(wanted[name])


def programs(folders: Iterable[str]) -> dict[str, str]:
    """Return the path of each program that may be shared, the first on the way winning."""
    found: dict[str, str] = {}
    for folder in folders:
        names = os.scandir(folder) if Path(folder).is_dir() else ()
        for entry in names:
            if not HIDDEN.match(entry.name):
                found.setdefault(entry.name, entry.path)
    return found
