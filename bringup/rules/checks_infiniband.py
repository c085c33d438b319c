"""IB-01 to IB-06: what each RDMA device is for, and whether its port is up and fast.

A host whose compute ports are down still serves alone, so these rows warn; what a pair of hosts
needs is judged by IB-16 and by the rules across hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, skipped, warned
from ..probes.hca import Hca, InfiniBand, Purpose, shown
from ..probes.kernel import Modules
from ..probes.pci import PciGpus
from ..probes.rdma import RdmaNodes
from .figures import slow_rails
from .judging import QUIET, SOFT, gpu_count, not_told, quiet, shut_out, unread
from .where import needs_network

BRIDGES = "https://github.com/siderolabs/extensions/issues/893"
GPUD = "https://github.com/leptonai/gpud"
SENTINEL = "https://github.com/NVIDIA/NVSentinel"
SHORT_OF = 0.95  # of the expected rate; rates are told in steps


def of_devices(look: Callable[[World, InfiniBand], Seen]) -> Callable[[World], Seen]:
    """Make a row's look from one that needs RDMA devices; without any, IB-16 speaks."""

    @wraps(look)
    def whole(world: World) -> Seen:
        reading = world.facts[InfiniBand]
        if isinstance(reading, Absent):
            return skipped("no RDMA device on this host")
        if not isinstance(reading, Known):
            return quiet(unread(reading))  # IB-16 tells why, once
        seen = look(world, reading.value)
        is_trouble = seen.status in (Status.FAIL, Status.WARN)
        return quiet(seen) if is_trouble and _stays_here(world) else seen

    return whole


def _stays_here(world: World) -> bool:
    """Tell whether what is to be served here talks to no other host: then no port is missed."""
    deployment, role = world.deployment, world.role
    return deployment is not None and role is not None and not needs_network(deployment, role)


def names(devices: Iterable[Hca]) -> str:
    """Return the names of devices, "none" for none."""
    return " ".join(device.name for device in devices) or "none"


@of_devices
def _classes(world: World, ib: InfiniBand) -> Seen:
    storage = ib.of(Purpose.STORAGE)
    lines = [f"compute: {names(ib.compute)}"]
    lines += [f"NVSwitch bridges, never in a NIC list: {names(ib.bridges)}"] if ib.bridges else []
    lines += [f"storage or management: {names(storage)}"] if storage else []
    gpus = gpu_count(world)
    gaps = "devices that were not listed"
    if not ib.compute:
        return failed(*lines) if ib.whole else not_told(gaps)
    if elastic := [device for device in ib.compute if device.is_elastic]:
        return _elastic(world, lines, elastic)
    if not ib.whole:
        return Seen(Status.UNKNOWN, (*lines, f"unknown: {gaps}"), level=Level.NOTE)
    if gpus and len(ib.compute) < gpus:
        is_board = world.kind is not None and world.kind.form == "hgx"
        lines.append(f"{len(ib.compute)} compute devices for {gpus} GPUs")
        return warned(*lines, level=Level.WARN if is_board else Level.NOTE)
    return passed(*lines)


def _elastic(world: World, lines: list[str], devices: list[Hca]) -> Seen:
    told = f"{names(devices)}: Elastic Fabric Adapters, which UCX cannot use"
    remedy = "give NCCL the aws-ofi-nccl plugin and NIXL its LIBFABRIC backend; no NIC list applies"
    return warned(*lines, told, level=Level.WARN if world.role else Level.NOTE, remedy=remedy)


@of_devices
def _ports(_world: World, ib: InfiniBand) -> Seen:
    down = [device for device in ib.compute if not device.is_active]
    if not ib.compute:
        return skipped("no compute device")
    if not any(device.state for device in ib.compute):
        return not_told("port states")
    lines = [_trouble(device) for device in down]
    if len(down) == len(ib.compute):
        return failed(*lines, f"all {len(down)} compute ports are down", remedy=_cure(down))
    if down:
        up = [device for device in ib.compute if device.is_active]
        return failed(*lines, f"usable: {names(up)}", remedy=_cure(down))
    if not ib.whole:
        return not_told(f"ports that were not listed beside {names(ib.compute)}")
    others = [d for d in ib.of(Purpose.STORAGE) if d.state == "DOWN"]
    if others:
        lines = [_trouble(device) for device in others]
        return warned(*lines, "for storage or management", level=Level.NOTE, remedy=_cure(others))
    return passed(shown(ib.compute))


def _trouble(device: Hca) -> str:
    line = f"{device.name}: {device.state or 'state unknown'}, {device.physical or 'link unknown'}"
    if device.state in ("INIT", "ARMED"):
        told = f" (SM lid {device.sm_lid})" if device.sm_lid is not None else ""
        return f"{line}: link is up, but no subnet manager has brought the port up{told}"
    return line


def _cure(down: list[Hca]) -> str:
    first = down[0]
    if first.state in ("INIT", "ARMED"):
        return (
            f"ask whoever runs the subnet manager about {first.name}'s switch port and partition; "
            f"meanwhile leave it out of the device list; look again: ibstat {first.name}"
        )
    if first.physical == "Disabled":
        return f"enable the port: ibportstate -D 0 {first.port} enable (device {first.name})"
    return f"check cable, optics and switch port of {names(down)}; look again: ibstat {first.name}"


@of_devices
def _rates(world: World, ib: InfiniBand) -> Seen:
    active = [device for device in ib.compute if device.is_active]
    if not active:
        return skipped("no active compute port")
    if poor := slow_rails(world, active):
        return poor
    if not ib.whole:
        return not_told(f"ports that were not listed beside {names(active)}")
    if any(device.rate_gb_s is None for device in active):
        return not_told("rates of ports")
    want = world.kind.rate_gb_s_per_gpu if world.kind else None
    rates = _per_gpu(ib, gpu_count(world))
    rates = {where: rate for where, rate in rates.items() if rate}  # IB-02 tells of the others
    if want is None or not rates:
        return _even(active)
    slow = {where: rate for where, rate in rates.items() if rate < want * SHORT_OF}
    lines = [f"{where}: {rate:g} of {want:g} Gb/s" for where, rate in slow.items()]
    if not slow:
        return passed(f"{min(rates.values()):g} Gb/s or more for each GPU")
    return warned(*lines) if len(slow) == 1 else failed(*lines)


def _per_gpu(ib: InfiniBand, gpus: int | None) -> dict[str, float]:
    """Sum the rates of each GPU's own ports.

    Without affinity a port stands for a GPU where there are as many, else the sum is shared out.
    """
    rates = {d.name: d.rate_gb_s or 0.0 for d in ib.compute if d.is_active}
    if any(ib.rails.values()):
        return {f"GPU {g}": sum(rates.get(n, 0.0) for n in own) for g, own in ib.rails.items()}
    if len(rates) == gpus:
        return rates
    return {f"GPU {g}": sum(rates.values()) / gpus for g in range(gpus)} if gpus else {}


def _even(active: list[Hca]) -> Seen:
    """Without an expected rate, ports at least agree among themselves."""
    fastest = max(device.rate_gb_s or 0.0 for device in active)
    slow = [device for device in active if (device.rate_gb_s or 0.0) < fastest * SHORT_OF]
    if slow:
        return warned(*(f"{d.name}: {d.rate_gb_s:g} Gb/s, others {fastest:g}" for d in slow))
    return passed(f"{len(active)} ports at {fastest:g} Gb/s")


@of_devices
def _nodes(world: World, _ib: InfiniBand) -> Seen:
    reading = world.facts[RdmaNodes]
    if isinstance(reading, Absent):
        return failed(reading.evidence)
    if isinstance(reading, Unknown):
        return unread(reading)
    have = reading.value.names
    if not any(name.startswith("uverbs") for name in have):
        return failed(f"no uverbs among {' '.join(have)}")
    verbs = tuple(file for file in reading.value.closed if "/uverbs" in file)
    if shut := shut_out(world, verbs):
        return shut
    if "rdma_cm" not in have:
        return warned(f"no rdma_cm among {' '.join(have)}", remedy="modprobe rdma_ucm")
    needs_umad = world.kind is not None and world.kind.nvlsm
    if needs_umad and not any(name.startswith("umad") for name in have):
        return warned(f"no umad among {' '.join(have)}", remedy="modprobe ib_umad")
    return passed(" ".join(have))


WANTED = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs")


def _modules(world: World) -> Seen:
    reading, devices = world.facts[Modules], world.facts[InfiniBand]
    if not isinstance(reading, Known):
        return unread(reading)
    has_cards = reading.value.has("mlx5_core")
    if isinstance(devices, Known) and not any("mlx5" in d.name for d in devices.value.devices):
        return skipped("no mlx5 device on this host")
    bus = world.facts[PciGpus]
    if isinstance(devices, Absent) and isinstance(bus, Known) and bus.value.cards == 0:
        return skipped("no Mellanox network card on the PCI bus")
    if has_cards is False and not isinstance(devices, Known):
        return skipped("mlx5_core is not loaded: no Mellanox network card in use")
    missing = [name for name in WANTED if reading.value.has(name) is False]
    if missing:
        return failed(f"not loaded: {' '.join(missing)}", remedy=_load(missing, reading.value))
    untold = [name for name in WANTED if reading.value.has(name) is None]
    return not_told(f"whether {' '.join(untold)} is loaded") if untold else passed(" ".join(WANTED))


def _load(missing: list[str], modules: Modules) -> str:
    lacking = [name for name in missing if modules.installed.get(name) is False]
    if lacking:
        return (
            f"{' '.join(lacking)} is not on disk: apt-get install linux-modules-extra-$(uname -r) "
            f"(or install DOCA-OFED), then modprobe -a {' '.join(missing)}"
        )
    return f"modprobe -a {' '.join(missing)}"


@of_devices
def _firmware(_world: World, ib: InfiniBand) -> Seen:
    versions: dict[str, list[str]] = {}
    for device in ib.compute:
        versions.setdefault(device.firmware, []).append(device.name)
    versions.pop("", None)
    if not versions:
        return not_told("firmware versions")
    lines = [f"{version}: {' '.join(own)}" for version, own in sorted(versions.items())]
    return passed(*lines) if len(versions) == 1 else warned(*lines)


ROWS: tuple[Row[World], ...] = (
    Row(
        "IB-01", "RDMA devices are told apart by purpose", _classes,
        "on HGX B200 and B300 some ACTIVE mlx5 devices are management functions of the NVSwitches "
        "and carry no traffic",
        BRIDGES,
        "where this is wrong, set compute_nics or storage_nics for the host, PCI prefixes such as "
        "0000:18,0000:40",
        SOFT,
    ),
    Row(
        "IB-02", "Compute ports are active", _ports,
        "a port that is not ACTIVE carries nothing, whatever rate it prints; a job that includes "
        "it hangs or fails at connect",
        "https://github.com/leptonai/gpud/pull/1209", "ibstat", SOFT,
    ),
    Row(
        "IB-03", "Compute ports have the expected rate for each GPU", _rates,
        "the number of ports a GPU differs by maker, the rate for a GPU does not; a slow rail "
        "slows all ranks",
        GPUD, "check transceivers and split configuration: mlxlink -d DEVICE", SOFT,
    ),
    Row(
        "IB-04", "Device files for verbs are there", _nodes,
        "user programs reach RDMA through /dev/infiniband/uverbsN and rdma_cm",
        SENTINEL, "modprobe -a ib_uverbs rdma_ucm", SOFT,
    ),
    Row(
        "IB-05", "Kernel modules for RDMA are loaded", _modules,
        "without mlx5_ib the cards are network cards only, and the NVSwitches of B200 and B300 "
        "boards cannot be managed",
        BRIDGES, levels=SOFT,
    ),
    Row(
        "IB-06", "Compute devices run one firmware", _firmware,
        "mixed firmware behaves differently under load and hides faults",
        "https://github.com/imbue-ai/cluster-health",
        "flash all to one version: mlxfwmanager --online -u", QUIET,
    ),
)  # fmt: skip
