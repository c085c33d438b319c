"""GPU-01 and GPU-04: are all GPUs there, on the bus and for NVML?"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, skipped, warned
from ..probes.driver import Driver
from ..probes.gpu import Gpus
from ..probes.pci import PciGpus
from ..probes.readers import smi
from ..probes.slurm import SshDevices
from .checks_gpu_driver import smi_trouble
from .judging import gpus_needed, gpus_of, loss, not_told, shut_out, sizes_of, unread

SHARED = "https://github.com/NVIDIA/NVSentinel/issues/155"


def _presence(world: World) -> Seen:
    reading, wanted = world.facts[PciGpus], world.host.gpu_count
    if hidden := _hidden(world, reading):
        return skipped(hidden)
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


def _hidden(world: World, reading: Reading[PciGpus]) -> str:
    """Return why the bus does not count where NVML lists GPUs that it does not show, else "".

    A container, WSL and some virtual machines show no bus, or not all of it.
    """
    listed = sum(1 for gpu in gpus_of(world) if not gpu.unreadable.get("name"))
    if isinstance(reading, Absent):
        shown = 0
    elif isinstance(reading, Known) and reading.value.count is not None:
        shown = reading.value.count
    else:
        return ""
    return f"NVML lists {listed} GPUs, the bus shows {shown} from here" if shown < listed else ""


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


def _nvml(world: World) -> Seen:
    reading, bus = world.facts[Gpus], world.facts[PciGpus]
    if smi_trouble(world, smi.Trouble.MISMATCH):
        return skipped("NVML cannot be asked until GPU-05 is cured")
    lost = smi_trouble(world, smi.Trouble.LOST, smi.Trouble.UNKNOWN_ERROR, smi.Trouble.NO_LIBRARY)
    if lost or smi_trouble(world, smi.Trouble.NO_DRIVER):
        return failed(lost or smi_trouble(world, smi.Trouble.NO_DRIVER))
    if not isinstance(reading, Known):
        driver = world.facts[Driver]
        shut = shut_out(world, driver.value.closed) if isinstance(driver, Known) else None
        return shut or unread(reading, essential=True)
    there = bus.value.count if isinstance(bus, Known) and not bus.value.is_loose else None
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
        "GPU-04",
        "NVML sees every GPU",
        _nvml,
        reason="engines count GPUs by NVML; one that it lacks is missing in the worker",
        source="https://github.com/leptonai/gpud",
        remedy="nvidia-smi -L; dmesg | grep -i xid; drain and reboot the host",
    ),
)
