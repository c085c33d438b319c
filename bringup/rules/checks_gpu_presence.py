"""GPU-01 to GPU-07: are all GPUs there, and does the driver serve them?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, skipped, warned
from ..core.version import at_least
from ..probes.driver import Driver
from ..probes.gpu import Gpus
from ..probes.kernel import Modules
from ..probes.kernel_log import KernelLog
from ..probes.pci import PciGpus
from ..probes.proof import CudaProof
from ..probes.readers import smi
from ..probes.slurm import SshDevices
from .judging import gpus_needed, gpus_of, loss, not_told, sizes_of, told, unread

CLOSED = "requires use of the NVIDIA open kernel modules"
SHARED = "https://github.com/NVIDIA/NVSentinel/issues/155"
INSTALL = "apt-get install nvidia-open nvidia-fabricmanager, both pinned to one version; reboot"


def _presence(world: World) -> Seen:
    reading, wanted = world.facts[PciGpus], world.host.gpu_count
    if isinstance(reading, Absent):
        return failed(reading.evidence, f"expected {wanted or 'at least one'}")
    if isinstance(reading, Unknown):
        return unread(reading)
    bus = reading.value
    gone = [gpu.bus_id for gpu in bus.gpus or () if gpu.is_gone]
    if gone:
        return failed(f"reads as all ones: {', '.join(gone)}", level=loss(world, gone))
    if bus.count is None:
        return not_told("only some GPUs of the bus were listed")
    if wanted is not None and bus.count < wanted:
        return failed(reading.evidence, f"expected {wanted}", level=loss(world, ()))
    if short := too_few(world, bus.count):
        return short
    return passed(reading.evidence if wanted else f"{reading.evidence} (hosts.yml states no count)")


def too_few(world: World, count: int) -> Seen | None:
    """Return the failure of a host that shows fewer GPUs than its role's sizes take, else None."""
    needed = gpus_needed(world)
    if needed is None or count >= needed:
        return None
    sizes = sizes_of(world) or f"the role's list of {needed} GPUs"
    remedy = (
        f"if the host has {needed} GPUs, find the one that is lost: dmesg | grep -i xid, then "
        "drain and reboot; if not, make the sizes in the inventory smaller"
    )
    return failed(f"{count} GPUs seen, {sizes} takes {needed} of this host", remedy=remedy)


def _bound(world: World) -> Seen:
    driver, log = world.facts[Driver], world.facts[KernelLog]
    bus, modules = world.facts[PciGpus], world.facts[Modules]
    others = {g.driver for g in bus.value.gpus or ()} if isinstance(bus, Known) else set[str]()
    if "nouveau" in others or (isinstance(modules, Known) and "nouveau" in modules.value):
        return failed("nouveau drives the GPUs" if "nouveau" in others else "nouveau is loaded",
                      remedy=NOUVEAU)  # fmt: skip
    if isinstance(driver, Known) and isinstance(driver.value.loaded, Absent):
        said = _why_not_loaded(log, driver.value)
        return failed(driver.value.loaded.evidence, *said[:2], remedy=_remedy(driver.value))
    if trouble := _trouble(world, smi.Trouble.NO_DRIVER):
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
    there = bus.value.count if isinstance(bus, Known) else None
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


def _trouble(world: World, *kinds: smi.Trouble) -> str:
    """Return the complaint of nvidia-smi if it is of those kinds."""
    reading = world.facts[Gpus]
    if not isinstance(reading, Unknown):
        return ""
    complaint = smi.trouble_of(f"{reading.why}\n{reading.evidence}")
    return complaint[1] if complaint and complaint[0] in kinds else ""


def _nvml(world: World) -> Seen:
    reading, bus = world.facts[Gpus], world.facts[PciGpus]
    if _trouble(world, smi.Trouble.MISMATCH):
        return skipped("NVML cannot be asked until GPU-05 is cured")
    lost = _trouble(world, smi.Trouble.LOST, smi.Trouble.UNKNOWN_ERROR, smi.Trouble.NO_LIBRARY)
    if lost or _trouble(world, smi.Trouble.NO_DRIVER):
        return failed(lost or _trouble(world, smi.Trouble.NO_DRIVER))
    if not isinstance(reading, Known):
        return unread(reading, essential=True)
    there = bus.value.count if isinstance(bus, Known) else None
    wanted = there if there is not None else world.host.gpu_count
    if lines := tuple(_lost(reading.value)):
        return failed(*lines, level=loss(world, lines))
    count = reading.value.count
    if count is None:
        return not_told("NVML listed only some of its GPUs")
    if count == 0:
        return _none_seen(world, wanted)
    if wanted is not None and count < wanted:
        return failed(f"NVML sees {count} of {wanted} GPUs",
                      level=loss(world, range(wanted - count)))  # fmt: skip
    if short := too_few(world, count):
        return short
    complaint = smi.trouble_of(reading.value.trouble)
    if complaint and complaint[0] is smi.Trouble.INFOROM:
        return warned(complaint[1], remedy="drain, reboot; if it stays, have the board replaced")
    return passed(f"NVML sees {count} GPUs")


def _lost(gpus: Gpus) -> Iterator[str]:
    """Yield GPUs that are named but do not answer, and gaps in the numbering."""
    for gpu in gpus.gpus:
        if gpu.unreadable.get("name"):
            yield f"GPU {gpu.index}: name reads {gpu.unreadable['name']}"
    indices = [gpu.index for gpu in gpus.gpus]
    complaint = smi.trouble_of(gpus.trouble)
    if complaint and complaint[0] in _GONE:
        yield gpus.trouble
    elif gpus.whole and indices and max(indices) >= len(indices):
        absent = sorted(set(range(max(indices))) - set(indices))
        yield f"no GPU {', '.join(map(str, absent))} between the others"


_GONE = (smi.Trouble.LOST, smi.Trouble.RESET, smi.Trouble.UNKNOWN_ERROR)


def _none_seen(world: World, wanted: int | None) -> Seen:
    driver = world.facts[Driver]
    held = driver.value.bound if isinstance(driver, Known) else None
    policy = world.facts[SshDevices]
    if held and isinstance(policy, Known) and policy.value.hides_gpus:
        return warned(f"NVML shows this login no GPU, the driver holds {held}", policy.evidence,
                      remedy="look from a job: srun --gres=gpu:1 nvidia-smi -L")  # fmt: skip
    if held:
        why = f"NVML shows this login no GPU, yet the driver holds {held}"
        return Seen(Status.UNKNOWN, (why, "a Slurm node may hide GPUs from SSH (DeviceAllow)"),
                    level=Level.BLOCK, remedy="srun --gres=gpu:1 nvidia-smi -L")  # fmt: skip
    return failed("No devices were found", f"expected {wanted or 'at least one'}")


def _same(world: World) -> Seen:
    driver = world.facts[Driver]
    parts = driver.value if isinstance(driver, Known) else Driver()
    loaded, disk, library = told(parts.loaded), told(parts.on_disk), told(parts.library)
    upgraded = (parts.upgraded,) if parts.upgraded else ()
    seen = (f"loaded {loaded or '?'}", f"library {library or '?'}", f"on disk {disk or '?'}")
    if mismatch := _trouble(world, smi.Trouble.MISMATCH):
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
        "GPU-01",
        "All GPUs are on the PCI bus",
        _presence,
        reason="a GPU that the bus does not show is lost to every layer above",
        source=SHARED,
        remedy="power-cycle the host; if it stays away, reseat or replace the board "
        "(never remove and rescan a Blackwell GPU whose BAR0 is unassigned)",
    ),
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
        "GPU-04",
        "NVML sees every GPU",
        _nvml,
        reason="engines count GPUs by NVML; one that it lacks is missing in the worker",
        source="https://github.com/leptonai/gpud",
        remedy="nvidia-smi -L; dmesg | grep -i xid; drain and reboot the host",
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
