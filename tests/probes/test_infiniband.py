"""RDMA devices: what is a NIC, which GPU it belongs to, and what NCCL and UCX are told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.core.facts import read
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.script import Section, compose, split
from bringup.probes import infiniband
from bringup.probes.hca import Hca, InfiniBand, Purpose, Sighting, nccl_ib_hca, ucx_net_devices
from bringup.probes.hca_purpose import classified, reclassified, relevelled
from tests.needed import require_shell

GPU_VENDOR, GPU_CLASS = "0x10de", "0x030200"


class Sysfs:
    """A folder laid out as the kernel lays out PCI and RDMA devices."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/class/infiniband").mkdir(parents=True)
        (root / "sys/bus/pci/devices").mkdir(parents=True)

    def pci(self, path: str, **files: str) -> Path:
        device = self.root / "sys/devices" / path
        device.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (device / name).write_text(text + "\n")
        link = self.root / "sys/bus/pci/devices" / device.name
        link.symlink_to(f"../../../devices/{path}")
        return device

    def gpu(self, path: str, numa: int = 0) -> None:
        self.pci(path, vendor=GPU_VENDOR, **{"class": GPU_CLASS}, numa_node=str(numa))

    def hca(
        self, name: str, path: str, *, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)",
        layer: str = "InfiniBand", vpd: bytes | None = b"\x82\0ConnectX-7\0", numa: int = 0,
        guid: str = "",
    ) -> None:  # fmt: skip
        device = self.pci(path, vendor="0x15b3", device="0x1021", numa_node=str(numa))
        if vpd is not None:
            (device / "vpd").write_bytes(vpd)
        own = device / "infiniband" / name
        port = own / "ports/1"
        port.mkdir(parents=True)
        (own / "device").symlink_to("../..")
        (own / "fw_ver").write_text("28.43.1014\n")
        (own / "sys_image_guid").write_text((guid or f"0000:0000:0000:{len(name):04d}") + "\n")
        for key, text in {
            "state": state,
            "phys_state": "5: LinkUp",
            "rate": rate,
            "link_layer": layer,
            "lid": "0xf",
            "sm_lid": "0x3",
        }.items():
            (port / key).write_text(text + "\n")
        link = self.root / "sys/class/infiniband" / name
        link.symlink_to(f"../../devices/{path}/infiniband/{name}")


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def ask(root: Path, shell: tuple[str, ...] = ("sh",)) -> object:
    require_shell(shell[0])
    script = compose([infiniband.PROBE.ask], nonce="n1", root=str(root))
    done = subprocess.run(
        [*shell, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    return read([infiniband.PROBE], split(done.stdout, nonce="n1"))[InfiniBand]


def two_gpus_two_nics_and_bridges(sysfs: Sysfs) -> None:
    sysfs.gpu("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0")
    sysfs.gpu("pci0000:3d/0000:3d:01.0/0000:3e:00.0/0000:3f:00.0/0000:43:00.0", numa=1)
    sysfs.hca("mlx5_10", "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:18:00.0")
    sysfs.hca("mlx5_2", "pci0000:3d/0000:3d:01.0/0000:3e:00.0/0000:3f:01.0/0000:40:00.0", numa=1)
    for function in range(4):
        sysfs.hca(
            f"mlx5_{3 + function}", f"pci0000:05/0000:05:00.{function}", rate="100 Gb/sec (4X EDR)",
            vpd=b"\x82\x01\0SMDL=SW_MNG\0\xff", guid="0000:0000:0000:1010",
        )  # fmt: skip
    sysfs.hca("mlx5_7", "pci0000:29/0000:29:00.0", layer="Ethernet", rate="25 Gb/sec (1X EDR)")


@pytest.mark.parametrize("shell", [("dash",), ("bash",), ("busybox", "sh")])
def test_sysfs_is_read_alike_by_every_shell(sysfs: Sysfs, shell: tuple[str, ...]) -> None:
    two_gpus_two_nics_and_bridges(sysfs)
    ib = ask(sysfs.root, shell)
    assert isinstance(ib, Known)
    purposes = {d.name: d.purpose for d in ib.value.devices}
    assert list(purposes) == [f"mlx5_{n}" for n in (2, 3, 4, 5, 6, 7, 10)]
    assert {n for n, p in purposes.items() if p is Purpose.BRIDGE} == {
        f"mlx5_{n}" for n in (3, 4, 5, 6)
    }
    assert purposes["mlx5_7"] is Purpose.STORAGE
    assert ib.value.gpus == ("0000:1b:00.0", "0000:43:00.0")
    assert ib.value.nearest == {0: "mlx5_10", 1: "mlx5_2"}
    assert ucx_net_devices(ib.value) == "mlx5_10:1,mlx5_2:1"
    assert nccl_ib_hca(ib.value) == "=mlx5_10,mlx5_2"
    device = ib.value.named("mlx5_2")
    assert device is not None
    assert (device.lid, device.sm_lid, device.numa, device.rate_gb_s) == (15, 3, 1, 400.0)


def test_bridges_are_found_without_vpd(sysfs: Sysfs) -> None:
    for function in range(4):
        sysfs.hca(f"mlx5_{function}", f"pci0000:05/0000:05:00.{function}", vpd=None, guid="same")
    ib = ask(sysfs.root)
    assert isinstance(ib, Known)
    assert {d.purpose for d in ib.value.devices} == {Purpose.BRIDGE}


def test_a_host_without_the_folder_surely_has_no_device(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    assert isinstance(ask(tmp_path), Absent)


def test_an_empty_folder_is_absent_as_well(sysfs: Sysfs) -> None:
    sysfs.gpu("pci0000:15/0000:1b:00.0")
    assert isinstance(ask(sysfs.root), Absent)


def test_without_sysfs_nobody_could_look(tmp_path: Path) -> None:
    assert isinstance(ask(tmp_path), Unknown)


def sighting(name: str, slot: str, **more: object) -> Sighting:
    return Sighting(name, bus_id=slot, state="ACTIVE", **more)  # type: ignore[arg-type]


def purposes(ib: InfiniBand) -> dict[str, str]:
    return {d.name: d.purpose.name for d in ib.devices}


def test_a_port_that_is_down_is_judged_by_its_part_not_by_its_rate() -> None:
    down = Sighting("mlx5_0", bus_id="0000:18:00.0", state="DOWN", rate_gb_s=10.0)
    up = sighting("mlx5_1", "0000:40:00.0", rate_gb_s=400.0)
    assert purposes(classified([down, up])) == {"mlx5_0": "COMPUTE", "mlx5_1": "COMPUTE"}


def test_two_functions_of_one_card_are_compute_where_all_cards_are_such() -> None:
    devices = [sighting(f"mlx5_{i}", f"0000:{18 + i // 2}:00.{i % 2}") for i in range(4)]
    assert set(purposes(classified(devices)).values()) == {"COMPUTE"}


def test_two_rails_a_gpu_are_both_listed_in_gpu_order() -> None:
    levels = {
        "mlx5_0": ("NODE", "PXB"),
        "mlx5_1": ("NODE", "PXB"),
        "mlx5_2": ("PXB", "NODE"),
        "mlx5_3": ("PXB", "NODE"),
    }
    devices = [sighting(name, f"0000:{i + 10}:00.0") for i, name in enumerate(levels)]
    ib = classified(devices, levels=levels)
    assert ib.nearest == {0: "mlx5_2", 1: "mlx5_0"}
    assert ib.rails == {0: ("mlx5_2", "mlx5_3"), 1: ("mlx5_0", "mlx5_1")}
    assert nccl_ib_hca(ib) == "=mlx5_2,mlx5_3,mlx5_0,mlx5_1"


def test_gpus_share_a_device_where_devices_are_fewer() -> None:
    ib = classified([sighting("mlx5_0", "0000:18:00.0")], levels={"mlx5_0": ("PIX", "PXB")})
    assert ib.nearest == {0: "mlx5_0", 1: "mlx5_0"}
    assert nccl_ib_hca(ib) == "=mlx5_0"


def test_the_inventory_overrules_by_pci_prefix() -> None:
    ib = classified([sighting("mlx5_0", "0000:18:00.0"), sighting("mlx5_1", "0000:40:00.0")])
    told = reclassified(ib, {"0000:18": Purpose.STORAGE})
    assert purposes(told) == {"mlx5_0": "STORAGE", "mlx5_1": "COMPUTE"}
    assert told.devices[0].why == "inventory: PCI 0000:18"


def test_topo_levels_do_not_make_a_bridge_a_nic() -> None:
    bridge = sighting("mlx5_0", "0000:05:00.0", switch_management=True)
    ib = classified([bridge, sighting("mlx5_1", "0000:40:00.0")])
    told = relevelled(ib, {"mlx5_0": ("PXB",), "mlx5_1": ("NODE",)}, ("0000:1b:00.0",))
    assert purposes(told) == {"mlx5_0": "BRIDGE", "mlx5_1": "COMPUTE"}
    assert told.devices[0].why == "VPD says SW_MNG"


@pytest.mark.parametrize("state", ["INIT", "DOWN", "ARMED", ""])
def test_only_active_ports_enter_the_lists(state: str) -> None:
    ib = InfiniBand((Hca("mlx5_0", Purpose.COMPUTE, state=state),), {0: "mlx5_0"})
    assert (ucx_net_devices(ib), nccl_ib_hca(ib)) == ("", "")


TEXT = """\
gpu\t0000:1b:00.0\t/devices/pci0000:15/0000:1b:00.0\t0
mlx5_0\tseen\tyes
mlx5_0\tport\t1\tstate=4: ACTIVE
mlx5_0\tport\t1\trate=400 Gb/sec
end\tof devices
"""
NOISE = [*TEXT, "\0", "\x1b[4m", "ERR!", "\t", "\n"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(NOISE)), st.data())
def test_garbage_is_never_absent(noise: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(TEXT)))
    text = TEXT[:cut] + "".join(noise) + TEXT[cut:]
    assert not isinstance(infiniband.parse(Section("infiniband", 0, text)), Absent)
    assert isinstance(infiniband.parse(Section("infiniband", 0, TEXT[:cut])), Known | Unknown)


@given(st.text())
def test_only_our_own_word_makes_absent(text: str) -> None:
    section = Section("infiniband", 3, text)
    assert isinstance(infiniband.parse(section), Absent) == section.first.startswith("absent: ")
