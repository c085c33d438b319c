"""A fault for each remedy: how a host comes to have it, and what its check says before and after.

The host has eight B300 with their driver, stand-in packages, and the real apt, dpkg and systemd.
Every script brings about all that its finding depends on, so that faults stand in any order.
A new remedy needs a row here, or the suite fails.
"""

from __future__ import annotations

from dataclasses import dataclass

IN_CONTAINER = """\
engine: vllm
model: {served_name: m, path: /raid/m, weights_gib: 1}
image: {name: own, reference: "example.org/vllm:1", engine_version: 0.24.0}
roles: {serve: {mode: aggregated, hosts: HOST}}
"""
ON_HOST = f"{IN_CONTAINER}in_container: false\n"


@dataclass(frozen=True)
class Fault:
    """`script` makes it. `before` and `after` are the statuses of its finding.

    `proof` is sh text that proves the fix, where the tests' machine cannot show it to the check.
    """

    finding: str
    about: str
    script: str
    before: str = "fail"
    after: str = "pass"
    deployment: str = ""
    proof: str = ""
    told_as: str = ""  # the rule that tells it where something is to run
    undone: str = ""  # its status after undo, where that is not `before`: what stays, hurts nobody


ENGINE = "apt-get -q -y install docker.io >/dev/null; systemctl enable -q --now docker\n"
TOOLKIT = f"{ENGINE}apt-get -q -y install nvidia-container-toolkit >/dev/null\n"
NO_RUNTIME = "rm -rf /etc/docker/daemon.json /etc/cdi; systemctl restart docker\n"
MANAGER = """\
modprobe -a mlx5_ib ib_umad
apt-mark unhold nvidia-fabricmanager >/dev/null
apt-get -q -y install nvlsm infiniband-diags >/dev/null
"""
UNLOADED = """
for module in rdma_ucm ib_umad ib_uverbs mlx5_ib; do
  [ ! -d /sys/module/$module ] || modprobe -r $module
done
rm -f /etc/modules-load.d/bringup-*
"""
OPEN, CLOSED = "Open Kernel Module for x86_64", "x86_64 Kernel Module"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "CTR-01", "no engine", "apt-get -q -y purge docker.io >/dev/null; rm -rf /etc/docker",
        deployment=IN_CONTAINER,
    ),
    Fault("CTR-01", "an engine that is stopped", f"{ENGINE}systemctl disable -q --now docker",
          deployment=IN_CONTAINER),
    Fault(
        "CTR-02", "no toolkit",
        f"{ENGINE}apt-get -q -y purge nvidia-container-toolkit >/dev/null || :",
        deployment=IN_CONTAINER,
    ),
    Fault(
        "CTR-02", "a toolkit with a known flaw",
        f"{ENGINE}apt-get -q -y --allow-downgrades install nvidia-container-toolkit=1.17.4-1",
        deployment=IN_CONTAINER,
    ),
    Fault("CTR-03", "no way to GPUs", f"{TOOLKIT}{NO_RUNTIME}", deployment=IN_CONTAINER),
    Fault(
        "CTR-03", "a CDI specification for another driver",
        f"{TOOLKIT}{NO_RUNTIME}nvidia-ctk cdi generate\n"
        "sed -i 's/libcuda.so.*/libcuda.so.570.1/' /etc/cdi/nvidia.yaml",
        before="warn", deployment=IN_CONTAINER, undone="pass",
    ),
    Fault(
        "CTR-05", "devices that systemd does not know",
        f"{TOOLKIT}{NO_RUNTIME}echo systemd >/run/docker.cgroups; rm -rf /dev/char",
        before="warn", undone="pass",
    ),
    Fault("CTR-09", "logs without end", f"{TOOLKIT}{NO_RUNTIME}", before="warn"),
    Fault(
        "GPU-07", "no unified memory",
        "[ ! -d /sys/module/nvidia_uvm ] || modprobe -r nvidia_uvm; rm -f /dev/nvidia-uvm",
    ),
    Fault(
        "GPU-08", "persistence off",
        "systemctl disable -q --now nvidia-persistenced; nvidia-smi -pm 0", before="warn",
    ),
    Fault("IB-05", "no RDMA modules",
          f"{UNLOADED}apt-get -q -y purge rdma-core infiniband-diags >/dev/null || :"),
    Fault("IB-04", "no device nodes", f"{UNLOADED}modprobe -a mlx5_ib"),
    Fault(
        "IB-09", "neither DMA-BUF nor nvidia_peermem",
        f"modprobe -a mlx5_ib; sed -i 's/{OPEN}/{CLOSED}/' /proc/driver/nvidia/version\n"
        "[ ! -d /sys/module/nvidia_peermem ] || modprobe -r nvidia_peermem",
        after="warn",  # the older way is told as such
    ),
    Fault(
        "FAB-04", "no prerequisites of fabric manager",
        f"{MANAGER}apt-get -q -y install nvidia-fabricmanager=580.126.09-1 >/dev/null\n"
        f"{UNLOADED}apt-get -q -y purge nvlsm infiniband-diags >/dev/null",
    ),
    Fault(
        "FAB-03", "fabric manager of another version than the driver",
        f"{MANAGER}apt-get -q -y --allow-downgrades install nvidia-fabricmanager=580.105.08-1\n"
        "apt-mark hold nvidia-fabricmanager",
    ),
    Fault(
        "FAB-02", "no fabric manager",
        f"{MANAGER}systemctl disable -q --now nvidia-fabricmanager 2>/dev/null\n"
        "apt-get -q -y purge nvidia-fabricmanager >/dev/null\n"
        "sed -i 's/Completed/In Progress/g' /usr/lib/lab/nvidia-smi/*",
        undone="skip",  # a fabric that is complete without a manager is somebody else's
    ),
    Fault(
        "FAB-02", "fabric manager that is stopped",
        f"{MANAGER}apt-get -q -y install nvidia-fabricmanager=580.126.09-1 >/dev/null\n"
        "systemctl disable -q --now nvidia-fabricmanager\n"
        "sed -i 's/Completed/In Progress/g' /usr/lib/lab/nvidia-smi/*",
    ),
    Fault("JIT-01", "no compiler", "apt-get -q -y purge 'cuda-toolkit-*' >/dev/null || :",
          before="warn", deployment=ON_HOST, told_as="vllm-without-nvcc"),
    Fault(
        "JIT-06", "no folder for compiled kernels",
        "mkdir -p /opt/home; cp -a /root/. /opt/home; umount /root 2>/dev/null\n"
        "mount --bind /opt/home /root; rm -rf /root/.cache",
        before="warn", after="warn", proof="[ -d /root/.cache ]",
    ),
    Fault("TIM-01", "nothing sets the clock", "apt-get -q -y purge chrony >/dev/null || :",
          before="warn"),
    Fault(
        "OS-02", "logins that may not lock memory", "rm -f /etc/security/limits.d/90-bringup.conf",
        after="fail", deployment=ON_HOST,  # the tests' sshd has no PAM
        proof="grep -q '^[*] *- *memlock *unlimited$' /etc/security/limits.d/90-bringup.conf",
    ),
    Fault(
        "OS-07", "an engine that may open few files",
        f"{ENGINE}rm -f /etc/systemd/system/docker.service.d/50-bringup.conf\n"
        "mkdir -p /etc/systemd/system/docker.service.d\n"
        "printf '[Service]\\nLimitNOFILE=1000\\n' >/etc/systemd/system/docker.service.d/10.conf\n"
        "systemctl daemon-reload; systemctl restart docker",
        before="warn", after="pass or note",  # a machine may cap what root itself can raise
        deployment=IN_CONTAINER,
        proof="[ $(systemctl show -p LimitNOFILE --value docker) = 1048576 ]",
    ),
    Fault("OS-03", "little shared memory", "mount -o remount,size=32m /dev/shm; : >/etc/fstab"),
    Fault(
        "OS-05", "processors that save power",
        "for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do\n"
        "echo powersave >$f; done",
        before="warn",
    ),
    Fault("OS-06", "NUMA balancing on", "echo 1 >/proc/sys/kernel/numa_balancing", before="warn"),
    Fault(
        "SLU-01", "a node that Slurm gives away",
        "printf '%s' \"$SCONTROL\" >/usr/bin/scontrol; printf '#!/bin/sh\\n' >/usr/bin/squeue\n"
        "chmod 755 /usr/bin/scontrol /usr/bin/squeue; rm -f /run/reservations",
        before="warn",
    ),
)  # fmt: skip

ELSEWHERE = {"OS-04": "test_memory.py"}
"""Remedies of what a whole machine shares, such as huge pages, and the tests of their steps."""

SCONTROL = r"""#!/bin/sh
f=/run/reservations
case "$*" in
*"show node"*) [ -s $f ] && state=IDLE+RESERVED || state=IDLE
  echo "NodeName=$(hostname) State=$state Reason=none" ;;
*"show reservation"*) for last; do :; done
  grep -s "ReservationName=$last " "$f" || echo "Reservation $last not found" ;;
"create reservation"*) shift 2; echo "$* " >>"$f"; echo "Reservation created" ;;
"delete ReservationName="*) sed -i "/$2 /d" "$f" ;;
esac
"""
