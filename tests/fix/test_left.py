"""What is left to a person: exact commands for this host, in an order that can be typed. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bringup.core.fixes import Choice, Fix
from bringup.core.host import Kind
from bringup.core.reading import Known
from bringup.core.rules import World, judge
from bringup.probes.containers import Container, Containers
from bringup.probes.driver import Driver
from bringup.probes.fabric import FabricManager
from bringup.probes.gpu import Gpus, Process
from bringup.probes.hca import InfiniBand
from bringup.probes.identity import Identity
from bringup.probes.kernel_log import KernelLog, Xid
from bringup.probes.rdma import AccessControl
from bringup.probes.slurm import GpuOwner, GpuOwners, Slurm, SlurmNode
from bringup.probes.system import Kernels
from bringup.remedies.by_hand import WAYS
from bringup.remedies.table import fixes_of
from bringup.rules import CHECKS

from ..rules.situations import B300, EIGHT, PAIR, nic, world

UBUNTU = Identity("h", "ubuntu", "24.04", kernel="6.8.0")
MANAGER = FabricManager("active", version=Known("580.95.05"), package="580.95.05-1")
NODE = Slurm("active", Known(SlurmNode("n4", "IDLE")), Known(()))
WORKER = Containers((Container("k3", state="running", labels={"bringup.config": "x"}),))
CARDS = Kind("card", ("NVIDIA L40S",), form="pcie", power_w=350)


def gpus(**changed: dict[str, Any]) -> Gpus:
    """Return eight GPUs, some with other values: ``g3={"mig": True}``."""
    listed = tuple(
        replace(gpu, bus_id=f"00000000:{gpu.index:02X}:00.0", **changed.get(f"g{gpu.index}", {}))
        for gpu in EIGHT.gpus
    )
    return replace(EIGHT, gpus=listed)


def left(of: World) -> dict[str, Fix]:
    found = fixes_of(of, judge(CHECKS, of), Choice())
    return {fix.finding.id: fix for fix in found if not fix.is_taken}


def typed(of: World) -> list[str]:
    """Return all that a person types, in order."""
    return [line for fix in left(of).values() for line in fix.commands]


def test_every_way_names_a_check() -> None:
    assert set(WAYS) <= {row.id for row in CHECKS}


def test_a_board_with_switches_is_freed_reset_whole_and_given_back() -> None:
    of = world(UBUNTU, gpus(g3={"remap_pending": True}), MANAGER, NODE, WORKER, kind=B300,
               pair=True)  # fmt: skip
    assert list(left(of)["GPU-10"].commands) == [
        "bringup serve.stop --deployment k3 --host b300-04",
        "bringup slurm.take --host b300-04 --drain --reason 'bringup: GPU-10'",
        "fuser -v /dev/nvidia*  # nobody may be left but NVIDIA's own daemons",
        "nvidia-smi --gpu-reset",
        "systemctl restart nvidia-fabricmanager",
        "bringup provision --host b300-04 --fix --check",
        "bringup slurm.give --host b300-04",
    ]
    assert left(of)["GPU-10"].withheld == "needs an idle host and a reset of GPU 3"


def test_cards_without_switches_are_reset_one_by_one() -> None:
    of = world(UBUNTU, gpus(g1={"remap_pending": True}, g6={"mig": True}), kind=CARDS)
    assert "nvidia-smi --gpu-reset -i 1,6" in typed(of)
    assert "nvidia-smi -i 6 -mig 0" in typed(of)


def test_one_reboot_stands_for_all_that_needs_one_or_a_reset() -> None:
    old = Driver(loaded=Known("580.95.05"), library=Known("580.126.09"), uvm_node=True)
    of = world(UBUNTU, gpus(g3={"mig": True}), MANAGER, old, kind=B300)
    lines = typed(of)
    hold = "apt-mark hold $(dpkg-query -W -f '${Package}\\n' '*nvidia*')"
    package = "'nvidia-fabricmanager=580.126.09*'"
    assert lines.count("systemctl reboot") == 1
    assert "nvidia-smi --gpu-reset" not in lines
    at = [lines.index(line) for line in (
        f"apt-get install --allow-change-held-packages {package}", hold, "nvidia-smi -i 3 -mig 0",
        "systemctl reboot", "bringup provision --host b300-04 --fix --check",
    )]  # fmt: skip
    assert at == sorted(at)


def test_a_kernel_without_a_driver_is_built_for_before_the_reboot() -> None:
    kernels = Kernels("6.8.0-1", {"6.8.0-1": True, "6.8.0-2": False})
    lines = typed(world(UBUNTU, kernels))
    assert lines.index("dkms autoinstall -k 6.8.0-2") < lines.index("systemctl reboot")


def test_a_host_that_slurm_gives_to_nobody_is_not_taken_or_given_back() -> None:
    kept = replace(NODE, node=Known(SlurmNode("n4", "IDLE+DRAIN", "ticket 7")))
    of = world(UBUNTU, gpus(g3={"remap_pending": True}), MANAGER, kept, kind=B300)
    assert not any("slurm." in line for line in typed(of))


@pytest.mark.parametrize(
    ("finding", "facts", "command"),
    [
        ("GPU-09", [gpus(g2={"ecc": False})], "nvidia-smi -i 2 -e 1"),
        ("GPU-13", [gpus(g5={"compute_mode": "Prohibited"})], "nvidia-smi -i 5 -c 0"),
        ("GPU-16", [gpus(g1={"pcie_width": 8, "pcie_width_max": 16})],
         "lspci -vv -s 0000:01:00.0 | grep LnkSta"),
        ("GPU-17", [gpus(g4={"power_limit_w": 300.0})], "nvidia-smi -i 4 -pl 350"),
        ("GPU-20", [gpus(g0={"processes": (Process(77, "train"),)}), NODE],
         "ps -o pid,user,lstart,args -p 77"),
        ("IB-03", [InfiniBand((nic("mlx5_0"), nic("mlx5_1", rate_gb_s=400.0)))],
         "mlxlink -d mlx5_1 -m -e"),
        ("IB-10", [AccessControl(("17:00.0",), 4), InfiniBand((nic("mlx5_0"),))],
         "setpci -s 17:00.0 ECAP_ACS+6.w=0000"),
        ("IB-14", [InfiniBand((nic("mlx5_0", link_layer="Ethernet", gid="RoCE v2", mtu=1500,
                                   netdev="ens1"),))], "ip link set ens1 mtu 9000"),
    ],
)  # fmt: skip
def test_what_a_host_tells_stands_in_its_commands(
    finding: str, facts: list[object], command: str
) -> None:
    assert command in left(world(UBUNTU, *facts, kind=CARDS))[finding].commands


def test_a_fatal_error_of_a_gpu_ends_in_a_reset_of_that_gpu() -> None:
    log = KernelLog(xids=(Xid(95, "0000:03:00", "NVRM: Xid (PCI:0000:03:00): 95", at_s=None),))
    of = world(UBUNTU, gpus(), log, kind=CARDS)
    assert left(of)["GPU-19"].withheld == "needs an idle host and a reset of GPU 3"


def test_a_gpu_that_fell_off_the_bus_is_power_cycled_once_for_all() -> None:
    log = KernelLog(xids=(Xid(79, "0000:03:00", "NVRM: Xid (PCI:0000:03:00): 79", at_s=None),))
    lines = typed(world(UBUNTU, gpus(g1={"remap_pending": True}), log, kind=B300))
    assert sum("ipmitool chassis power cycle" in line for line in lines) == 1
    assert not any("reboot" in line.partition("#")[0] or "--gpu-reset" in line for line in lines)


def test_memory_whose_holder_nobody_tells_is_looked_at_and_not_reset() -> None:
    of = world(UBUNTU, gpus(g0={"memory_used_mib": 9000, "processes": None}), NODE, kind=CARDS)
    assert left(of)["GPU-20"].commands == ("fuser -v /dev/nvidia*", "squeue -w n4")


def test_a_fix_that_waits_for_idle_gpus_comes_after_the_host_is_freed() -> None:
    other = replace(MANAGER, version=Known("570.1"), package="570.1-1")
    busy = GpuOwners((GpuOwner(7, "python"),))
    driver = Driver(loaded=Known("580.95.05"), uvm_node=True)
    of = world(UBUNTU, EIGHT, driver, other, busy, NODE, kind=B300)
    lines = left(of)["FAB-03"].commands
    assert lines[0].startswith("bringup slurm.take")
    assert lines[1] == "bringup provision --host b300-04 --fix-only FAB-03 --fix-level service"
    assert lines[-1] == "bringup slurm.give --host b300-04"


def test_what_only_a_check_can_word_keeps_its_words() -> None:
    of = world(UBUNTU, gpus(g3={"remap_failed": True}), kind=B300)
    (line,) = left(of)["GPU-10"].commands
    assert line.startswith("nvidia-smi -q -i 3  # serial numbers")
    assert PAIR.name not in line
