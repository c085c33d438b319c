"""The kernel's view of a practice host's hardware: /sys, /dev and the driver's part of /proc."""

from __future__ import annotations

from collections.abc import Iterator

from . import pci, rdma
from .hardware import Hardware, Slot, gpu_uuid
from .tree import Entry, File, Folder, Link, Tree


def files(hardware: Hardware) -> Tree:
    """Return all of /sys, /dev and /proc/driver that a probe of the hardware reads."""
    return dict(_entries(hardware))


def _entries(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    yield "/sys/bus/pci/devices", Folder()
    for place, numa in pci.bridges(hardware).items():
        yield from pci.entries(hardware.cpu.numbers(numa), numa, place, pci.BRIDGE)
    for index, slot in enumerate(hardware.slots):
        yield from _gpu(hardware, index, slot)
    yield from rdma.entries(hardware)
    if hardware.driver:
        yield from _driver(hardware)
    yield "/usr/lib/lab/lspci/devices", File("".join(_listed(hardware)))
    for group in range(2 if "iommu=" in hardware.os.command_line else 0):
        yield f"/sys/kernel/iommu_groups/{group}", Folder()
    yield from _processors(hardware)
    for module in hardware.modules:
        yield f"/sys/module/{module}/initstate", File("live\n")


def _gpu(hardware: Hardware, index: int, slot: Slot) -> Iterator[tuple[str, Entry]]:
    if not hardware.gpus:
        return
    gpus, folder = hardware.gpus, pci.folder(slot.pci)
    identity = pci.Identity("10de", gpus.device_id, "030200")
    yield from pci.entries(hardware.cpu.numbers(slot.numa), slot.numa, slot.pci, identity)
    yield f"{folder}/subsystem_vendor", File("0x10de\n")
    yield f"{folder}/subsystem_device", File(f"0x{gpus.subsystem_id.lower()}\n")
    if not hardware.driver:
        return
    yield pci.link(f"{folder}/driver", "/sys/bus/pci/drivers/nvidia")
    yield f"/dev/nvidia{index}", Link("/dev/null")
    lines = (
        ("Model: \t", gpus.product),
        ("IRQ:   \t", str(64 + index)),
        ("GPU UUID: ", gpu_uuid(hardware.name, index)),
        ("Video BIOS: ", gpus.vbios.lower()),
        ("Bus Type: ", "PCIe"),
        ("DMA Size: ", "52 bits"),
        ("DMA Mask: ", "0xfffffffffffff"),
        ("Bus Location: ", pci.device(slot.pci)),
        ("Device Minor: ", str(index)),
        ("GPU Firmware: ", hardware.driver.version),
        ("GPU Excluded:", "No"),
    )
    text = "".join(f"{name}\t {value}\n" for name, value in lines)
    yield f"/proc/driver/nvidia/gpus/{pci.device(slot.pci)}/information", File(text)


def _driver(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    """The loaded NVIDIA driver."""
    assert hardware.driver
    version = hardware.driver.version
    flavours = {"open": "Open Kernel Module for x86_64", "proprietary": "x86_64 Kernel Module"}
    text = (
        f"NVRM version: NVIDIA UNIX {flavours[hardware.driver.module]}  {version}  "
        "Release Build  (builder@buildhost)  \n"
        "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04) \n"
    )
    yield "/proc/driver/nvidia/version", File(text)
    yield "/sys/bus/pci/drivers/nvidia/module/version", File(f"{version}\n")
    yield "/sys/module/nvidia/version", File(f"{version}\n")
    yield "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", File("N\n")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
        if name != "nvidia-uvm" or "nvidia_uvm" in hardware.modules:
            yield f"/dev/{name}", Link("/dev/null")


def _processors(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    cpu = hardware.cpu
    everyone = f"0-{cpu.count - 1}"
    for name in ("online", "possible", "present"):
        yield f"/sys/devices/system/cpu/{name}", File(f"{everyone}\n")
    yield "/sys/devices/system/cpu/offline", File("\n")
    yield "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", File(f"{cpu.governor}\n")
    yield "/sys/devices/system/node/online", File(f"0-{cpu.sockets - 1}\n")
    for node in range(cpu.sockets):
        yield f"/sys/devices/system/node/node{node}/cpulist", File(f"{cpu.numbers(node)}\n")
    yield "/sys/devices/system/edac/mc/mc0/ce_count", File("0\n")
    yield "/sys/devices/system/edac/mc/mc0/ue_count", File("0\n")
    yield "/sys/kernel/mm/transparent_hugepage/enabled", File("always [madvise] never\n")
    yield "/sys/devices/virtual/dmi/id/product_name", File(f"{hardware.system}\n")
    yield "/sys/class/dmi/id", Link("../../devices/virtual/dmi/id")
    yield "/sys/fs/cgroup/cgroup.controllers", File("cpuset cpu io memory hugetlb pids rdma misc\n")


def _listed(hardware: Hardware) -> list[str]:
    """Return the lines of `lspci`: vendor, address and what people read, by tabs."""
    rows = [(place, "10b5", "PCI bridge: PCIe switch") for place in pci.bridges(hardware)]
    if hardware.gpus:
        product = hardware.gpus.product.removeprefix("NVIDIA ")
        what = f"3D controller: NVIDIA Corporation Device [{product}] (rev a1)"
        rows += [(slot.pci, "10de", what) for slot in hardware.slots]
    for port in hardware.ports:
        kind = "Infiniband" if port.link_layer == "InfiniBand" else "Ethernet"
        card = hardware.cards[port.card].product
        rows.append((port.pci, "15b3", f"{kind} controller: Mellanox Technologies [{card}]"))
    rows.sort(key=lambda row: pci.device(row[0]))
    return [f"{vendor}\t{pci.device(place)}\t{what}\n" for place, vendor, what in rows]
