"""GPU-02, GPU-03 and GPU-05 to GPU-07: does the driver hold the GPUs, and does it fit them?"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Row, Seen, World, failed, passed, skipped, warned
from ..core.version import at_least
from ..probes.driver import Driver
from ..probes.gpu import Gpus
from ..probes.kernel import Modules
from ..probes.kernel_log import KernelLog
from ..probes.pci import PciGpus
from ..probes.proof import CudaProof
from ..probes.readers import smi
from .judging import gpus_of, loss, not_told, told, unread

CLOSED = "requires use of the NVIDIA open kernel modules"
INSTALL = "apt-get install nvidia-open nvidia-fabricmanager, both pinned to one version; reboot"


def _bound(world: World) -> Seen:
    driver, log = world.facts[Driver], world.facts[KernelLog]
    bus, modules = world.facts[PciGpus], world.facts[Modules]
    others = {g.driver for g in bus.value.gpus or ()} if isinstance(bus, Known) else set[str]()
    if "nouveau" in others or (isinstance(modules, Known) and "nouveau" in modules.value):
        return failed("nouveau drives the GPUs" if "nouveau" in others else "nouveau is loaded",
                      remedy=NOUVEAU)  # fmt: skip
    if isinstance(driver, Known) and isinstance(driver.value.loaded, Absent):
        if listed := len(gpus_of(world)):
            return skipped(f"NVML lists {listed} GPUs: their module is loaded outside (WSL or so)")
        said = _why_not_loaded(log, driver.value)
        return failed(driver.value.loaded.evidence, *said[:2], remedy=_remedy(driver.value))
    if trouble := smi_trouble(world, smi.Trouble.NO_DRIVER):
        return failed(trouble)
    if not isinstance(driver, Known):
        return unread(driver)
    return _count(world, driver.value)


NOUVEAU = (
    "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/no-nouveau.conf; "
    "update-initramfs -u; reboot"
)


def _why_not_loaded(log: Known[KernelLog] | Absent | Unknown, driver: Driver) -> list[str]:
    lines = log.value.complaints or () if isinstance(log, Known) else ()
    disk = driver.on_disk
    absent = [disk.evidence] if isinstance(disk, Absent) and disk.evidence else []
    told = driver.loaded.evidence if isinstance(driver.loaded, Absent) else ""
    built = [driver.built] if driver.built not in ("", told) else []
    return absent + built + [line for line in lines if "NVRM" in line or "nvidia" in line]


SIGN = (
    "enrol the key that signed the module (mokutil --import /var/lib/shim-signed/mok/MOK.der; "
    "reboot, confirm), or turn Secure Boot off"
)


def _remedy(driver: Driver) -> str:
    if re.search(r"Key was rejected|Secure Boot", driver.built):
        return SIGN
    return "modprobe nvidia; dmesg | tail" if isinstance(driver.on_disk, Known) else INSTALL


def _count(world: World, driver: Driver) -> Seen:
    bus = world.facts[PciGpus]
    there = bus.value.count if isinstance(bus, Known) and not bus.value.is_loose else None
    version = told(driver.loaded)
    if there is not None and driver.bound is not None and driver.bound < there:
        line = f"the driver holds {driver.bound} of {there} GPUs"
        return failed(line, level=loss(world, range(there - driver.bound)))
    if not version:
        return not_told("no version of a loaded driver")
    return passed(f"driver {version}, {driver.bound if driver.bound is not None else '?'} GPUs")


def _open(world: World) -> Seen:
    log = world.facts[KernelLog]
    lines = log.value.complaints or () if isinstance(log, Known) else ()
    refused = next((line for line in lines if CLOSED in line), "")
    if refused:
        return failed(refused)
    driver = world.facts[Driver]
    if not isinstance(driver, Known):
        return unread(driver)
    if driver.value.is_open is None:
        return not_told("the flavour of the kernel module")
    if driver.value.is_open:
        return passed("the open kernel module is loaded")
    if world.kind is not None and not world.kind.open_module:
        return passed("the proprietary module is loaded; it serves these boards")
    if world.kind is None:
        return not_told("the proprietary module is loaded, and the kind of board is not known")
    return failed("the proprietary kernel module is loaded")


def smi_trouble(world: World, *kinds: smi.Trouble) -> str:
    """Return the complaint of nvidia-smi if it is of those kinds."""
    reading = world.facts[Gpus]
    if not isinstance(reading, Unknown):
        return ""
    complaint = smi.trouble_of(f"{reading.why}\n{reading.evidence}")
    return complaint[1] if complaint and complaint[0] in kinds else ""


def _same(world: World) -> Seen:
    driver = world.facts[Driver]
    parts = driver.value if isinstance(driver, Known) else Driver()
    loaded, disk, library = told(parts.loaded), told(parts.on_disk), told(parts.library)
    upgraded = (parts.upgraded,) if parts.upgraded else ()
    seen = (f"loaded {loaded or '?'}", f"library {library or '?'}", f"on disk {disk or '?'}")
    if mismatch := smi_trouble(world, smi.Trouble.MISMATCH):
        return failed(mismatch, ", ".join(seen), *upgraded)
    if loaded and library and not _agree(loaded, library):
        return failed(", ".join(seen), *upgraded)
    if loaded and disk and loaded != disk:
        return warned(f"{', '.join(seen)}: the next boot loads another driver", *upgraded)
    if loaded and (library or disk or gpus_of(world)):
        return passed(f"driver {loaded} everywhere")
    if not isinstance(driver, Known):
        return unread(driver)
    return not_told("versions of module and library")


def _agree(loaded: str, library: str) -> bool:
    """NVML may give its version short: 570.195 agrees with 570.195.03."""
    return loaded == library or loaded.startswith(f"{library}.")


def driver_version(world: World) -> str:
    """Return the version of the driver that runs, from the kernel or from NVML."""
    driver, gpus = world.facts[Driver], world.facts[Gpus]
    loaded = told(driver.value.loaded) if isinstance(driver, Known) else ""
    return loaded or (gpus.value.driver if isinstance(gpus, Known) else "")


def _floor(world: World) -> Seen:
    have, floor = driver_version(world), world.kind.driver_floor if world.kind else ""
    if not floor:
        return skipped("no lowest driver is stated for this kind of host")
    if not have:
        return not_told("the driver's version")
    verdict = at_least(have, floor)
    if verdict is None:
        return not_told(f"driver version {have!r} cannot be compared")
    line = f"driver {have}, {world.kind.name if world.kind else ''} needs {floor}"
    return passed(line) if verdict else failed(line)


def _uvm(world: World) -> Seen:
    proof = world.facts[CudaProof]
    if isinstance(proof, Known) and proof.value.code == 0:
        return passed(f"CUDA starts: {proof.value.line or 'cuInit 0'}")
    driver, modules = world.facts[Driver], world.facts[Modules]
    node = driver.value.uvm_node if isinstance(driver, Known) else None
    loaded = modules.value.has("nvidia_uvm") if isinstance(modules, Known) else None
    if loaded is False and isinstance(driver, Known) and isinstance(driver.value.loaded, Absent):
        return skipped("no NVIDIA module is loaded at all: GPU-02")
    if node is False or loaded is False:
        what = "/dev/nvidia-uvm is missing" if node is False else "nvidia_uvm is not loaded"
        return failed(what)
    if node or loaded:
        return passed("/dev/nvidia-uvm is there" if node else "nvidia_uvm is loaded")
    return not_told("the UVM module and node")


ROWS: tuple[Row[World], ...] = (
    Row(
        "GPU-02",
        "The driver holds every GPU",
        _bound,
        reason="without a bound driver neither NVML nor CUDA reaches a GPU",
        source="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
        remedy="dmesg | grep NVRM; modprobe nvidia",
    ),
    Row(
        "GPU-03",
        "The kernel module is the open one",
        _open,
        reason="Blackwell boards are served by the open kernel module only",
        source="https://github.com/NVIDIA/open-gpu-kernel-modules",
        remedy="apt-get install nvidia-open, of the version of the libraries; reboot",
    ),
    Row(
        "GPU-05",
        "Driver module and libraries are one version",
        _same,
        reason="a library of another version refuses to talk to the loaded module; running "
        "jobs go on, new ones fail",
        source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/394",
        remedy="drain and reboot, then hold the packages: apt-mark hold $(dpkg-query -W -f "
        "'${Package}\\n' '*nvidia*'); move fabric manager to the same version first",
    ),
    Row(
        "GPU-06",
        "The driver is new enough for the board",
        _floor,
        reason="older drivers do not know the board",
        source="https://github.com/NVIDIA/cloud-native-docs/pull/184",
        remedy=INSTALL,
    ),
    Row(
        "GPU-07",
        "Unified memory module is loaded",
        _uvm,
        reason="without nvidia_uvm, nvidia-smi looks sound and every CUDA program fails",
        source="https://github.com/ocf/puppet/issues/1493",
        remedy="modprobe nvidia_uvm && nvidia-modprobe -u -c=0; "
        "systemctl enable --now nvidia-persistenced",
    ),
)
