"""IB-09 to IB-16: the way from a GPU to the network, on the host and inside the image."""

from __future__ import annotations

import re
from dataclasses import replace

from ..core.reading import Absent, Known, Unknown, value_of
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, skipped, warned
from ..probes.driver import Driver
from ..probes.figures import NcclNetwork
from ..probes.gpu import Gpus
from ..probes.hca import InfiniBand, nccl_ib_hca, rail_order, ucx_net_devices
from ..probes.hca_rails import CLOSENESS, NEAR
from ..probes.identity import Identity
from ..probes.inside import Inside
from ..probes.kernel import Boot, Modules
from ..probes.rdma import AccessControl
from ..probes.text import version
from .checks_infiniband import names, of_devices
from .figures import unused
from .judging import SOFT, gpu_count, not_told, unread
from .where import needs_network

DMA_BUF = (5, 12)  # first kernel whose verbs take DMA-BUF
OPERATOR = (
    "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html"
)
AFFINITY = "https://github.com/ai-dynamo/modelexpress/pull/255"


@of_devices
def _direct(world: World, ib: InfiniBand) -> Seen:
    """DMA-BUF needs the open module and kernel 5.12; nvidia_peermem is the older way."""
    if not ib.compute or gpu_count(world) == 0:
        return skipped("no GPU and compute device that could use it")
    driver, modules = world.facts[Driver], world.facts[Modules]
    is_open = driver.value.is_open if isinstance(driver, Known) else None
    new = _is_new(world)
    if is_open and new:
        return passed("DMA-BUF: open kernel module, kernel 5.12 or later")
    peermem = modules.value.has("nvidia_peermem") if isinstance(modules, Known) else None
    if peermem:
        return warned("nvidia_peermem only", level=Level.NOTE)
    if peermem is False and (is_open is False or new is False):
        why = "the driver is not the open module" if is_open is False else "kernel before 5.12"
        return failed(f"no DMA-BUF ({why}), and nvidia_peermem is not loaded")
    return not_told("whether DMA-BUF or nvidia_peermem works")


def _is_new(world: World) -> bool | None:
    identity = world.facts[Identity]
    release = version(identity.value.kernel) if isinstance(identity, Known) else ()
    return release >= DMA_BUF if release else None


def _detours(world: World) -> Seen:
    identity, boot = world.facts[Identity], world.facts[Boot]
    if isinstance(world.facts[InfiniBand], Absent):
        return skipped("no RDMA device on this host")
    if isinstance(identity, Known) and identity.value.virtual:
        return skipped("a virtual machine: there ACS must be on, with ATS on every card")
    control = world.facts[AccessControl]
    if isinstance(control, Known) and control.value.validating:
        bridges = control.value.validating
        return failed(control.evidence, f"first: {bridges[0]}")
    if isinstance(boot, Known) and _has_iommu(boot.value):
        return warned("IOMMU is on without iommu=pt", boot.evidence, level=Level.NOTE)
    return passed(control.evidence) if isinstance(control, Known) else unread(control)


def _has_iommu(boot: Boot) -> bool:
    words = boot.command_line
    passes = "iommu=pt" in words or any(re.search(r"iommu=(off|pt)$", word) for word in words)
    return boot.has_iommu is not False and any("iommu=on" in w for w in words) and not passes


def _good(world: World) -> tuple[str, ...]:
    """Return the levels that are as near as can be: on a rack's trays all is behind Grace."""
    is_rack = world.kind is not None and world.kind.form == "rack"
    return (*NEAR, "PHB", "NODE") if is_rack else NEAR


@of_devices
def _affinity(world: World, ib: InfiniBand) -> Seen:
    if not any(device.state for device in ib.compute):  # nobody looked: the map holds all the same
        ib = replace(ib, devices=tuple(replace(d, state="ACTIVE") for d in ib.devices))
    usable = rail_order(ib)
    if not usable:
        return skipped("no active compute device")
    lists = (f"UCX_NET_DEVICES={ucx_net_devices(ib)}", f"NCCL_IB_HCA={nccl_ib_hca(ib)}")
    if not ib.nearest:
        return Seen(
            Status.UNKNOWN, ("unknown: how near each GPU's device is", *lists), level=Level.NOTE
        )
    pairs = {gpu: ib.named(name) for gpu, name in sorted(ib.nearest.items())}
    levels = {gpu: device.levels[gpu] for gpu, device in pairs.items() if device}
    line = ", ".join(f"GPU {gpu} {ib.nearest[gpu]} {level}" for gpu, level in levels.items())
    far = [gpu for gpu, level in levels.items() if level not in _good(world)]
    if not far:
        return passed(line, *lists)
    is_virtual = isinstance(i := world.facts[Identity], Known) and bool(i.value.virtual)
    level = Level.NOTE if is_virtual else Level.WARN
    worst = max(levels.values(), key=CLOSENESS.index)
    status = Status.FAIL if worst == "SYS" and len(far) == len(levels) else Status.WARN
    return Seen(status, (line, *lists), level=level)


@of_devices
def _inside(world: World, ib: InfiniBand) -> Seen:
    if world.deployment and not world.deployment.in_container:
        return skipped("no container in this deployment")
    host = [device.name for device in ib.compute if device.is_active]
    reading = world.facts[Inside]
    if not host:
        return skipped("no active compute device on the host")
    network = world.facts[NcclNetwork]
    if isinstance(network, Known) and network.value.name == "Socket":
        return failed(f"host: {' '.join(host)}", f"NCCL goes over TCP: {network.evidence}")
    if not isinstance(reading, Known):
        seen = f"NCCL uses the devices: {network.evidence}" if isinstance(network, Known) else ""
        return passed(seen) if seen else unread(reading)
    inside = reading.value
    if isinstance(inside.rdma, Absent) or isinstance(inside.rdma_nodes, Absent):
        return failed(
            f"host: {' '.join(host)}", f"container {inside.container}: no /dev/infiniband"
        )
    if isinstance(inside.rdma, Known):
        missing = [name for name in host if name not in inside.rdma.value]
        if missing:
            line = f"container {inside.container} lacks {' '.join(missing)}"
            return failed(f"host: {' '.join(host)}", line, inside.rdma.evidence)
    if inside.ucx_transports is not None:
        return _transports(inside.ucx_transports)
    if isinstance(inside.rdma, Known):
        return warned(
            "devices are there; that payload goes over RDMA is unproven", level=Level.NOTE
        )
    return not_told("RDMA devices inside the container")


def _transports(transports: tuple[str, ...]) -> Seen:
    line = f"UCX transports: {' '.join(transports)}"
    bare = {re.split(r"[_:]", transport)[0] for transport in transports}
    if not bare & {"rc", "dc", "ud"}:
        return failed(line, "UCX in this image has no RDMA transport")
    return (
        passed(line) if "cuda" in bare else warned(line, "no CUDA transport: copies over the host")
    )


def _nixl(world: World) -> Seen:
    reading = world.facts[Inside]
    if not isinstance(reading, Known):
        return unread(reading)
    found = {n: v for n, v in reading.value.packages.items() if re.fullmatch(r"nixl(-cu\d+)?", n)}
    if not found:
        return not_told("the version of NIXL")
    name, told = next(iter(sorted(found.items())))
    line = f"{name} {told}"
    return passed(line) if version(told) >= (1, 0) else failed(line)


@of_devices
def _roce(_world: World, ib: InfiniBand) -> Seen:
    ports = [d for d in ib.compute if d.link_layer == "Ethernet" and d.is_active]
    if not ports:
        return skipped("no active Ethernet port for compute")
    without = [device for device in ports if device.gid != "RoCE v2"]
    if without:
        return failed(f"no RoCE v2 address: {names(without)}")
    small = [device for device in ports if device.mtu is not None and device.mtu < 4200]
    if small:
        return warned(*(f"{d.name}: MTU {d.mtu} of {d.netdev}" for d in small))
    return passed(f"RoCE v2 on {names(ports)}")


def _none(world: World) -> Seen:
    reading = world.facts[InfiniBand]
    if isinstance(reading, Unknown):
        return unread(reading, essential=_is_needed(world))
    if isinstance(reading, Absent):
        return _without(world, reading.evidence)
    usable = rail_order(reading.value)
    if usable:
        line = unused(world, usable)
        return _without(world, line) if line else passed(f"active: {names(usable)}")
    if reading.value.compute and not any(device.state for device in reading.value.compute):
        return not_told("the state of the compute ports")
    if not reading.value.whole:
        return not_told("ports that were not listed")
    return _without(world, "no active port")


def _is_needed(world: World) -> bool:
    deployment, role = world.deployment, world.role
    if deployment is None or role is None or deployment.accept_tcp:
        return False
    return needs_network(deployment, role)


def _should_have(world: World) -> bool:
    """A whole board of its kind has NICs; a machine that is lent some of its GPUs may have none."""
    kind, gpus = world.kind, value_of(world.facts[Gpus])
    if kind is None or kind.rate_gb_s_per_gpu is None:
        return False
    return gpus is None or kind.gpu_count is None or len(gpus.gpus) >= kind.gpu_count


def _without(world: World, line: str) -> Seen:
    """No RDMA costs nothing where one host serves alone.

    Across hosts it is a failure of the host's part; that it stops the deployment is said by the
    deployment's own rule, which knows whether TCP was accepted.
    """
    deployment, role = world.deployment, world.role
    if deployment is None or role is None:
        return warned(line, level=Level.WARN if _should_have(world) else Level.NOTE)
    if deployment.accept_tcp and needs_network(deployment, role):
        return warned(line, "accept_tcp: true")
    if not _is_needed(world):
        return warned(line, level=Level.NOTE)
    return failed(line, f"role {role.name} talks to other hosts' GPUs", level=Level.WARN)


def _pair_test(_world: World) -> Seen:
    return skipped("measured between two hosts, by: bringup probe.pair --from HOST --to HOST")


ROWS: tuple[Row[World], ...] = (
    Row(
        "IB-09", "GPUs and network cards reach each other's memory", _direct,
        "GPUDirect RDMA goes by DMA-BUF (open module, kernel 5.12) or by nvidia_peermem; without "
        "either, every transfer is copied through host memory",
        OPERATOR, "modprobe nvidia_peermem; or install the open kernel module of the driver", SOFT,
    ),
    Row(
        "IB-10", "Traffic between devices takes no detour", _detours,
        "ACS on PCI bridges sends GPU to NIC traffic through the processor",
        "https://github.com/NVIDIA/nccl/issues/489",
        "disable ACS in the BIOS, or at boot for each bridge: setpci -s BRIDGE ECAP_ACS+6.w=0000",
        SOFT,
    ),
    Row(
        "IB-11", "Each GPU has a network card beside it", _affinity,
        "a card at PIX or PXB is reached without the processor; the lists follow this order",
        AFFINITY, "compare with nvidia-smi topo -m; check risers and slots", SOFT,
    ),
    Row(
        "IB-12", "The container sees the host's RDMA", _inside,
        "host networking carries no verbs devices into a container; NCCL then falls back to TCP "
        "without a word, NIXL and UCX fail",
        "https://github.com/vllm-project/vllm/pull/42075",
        "start it with --device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1", SOFT,
    ),
    Row(
        "IB-13", "NIXL is new enough", _nixl, "0.10 fails on B200",
        "https://github.com/vllm-project/vllm/issues/35799", "use an image with NIXL 1.0 or later",
        SOFT,
    ),
    Row(
        "IB-14", "RoCE ports have a version 2 address and a large MTU", _roce,
        "version 1 addresses are not routed, and small frames cost a third of the bandwidth",
        "https://enterprise-support.nvidia.com/s/article/recommended-network-configuration-examples-for-roce-deployment",
        "give the port an IP address and set its MTU: ip link set DEVICE mtu 9000", SOFT,
    ),
    Row(
        "IB-16", "RDMA is there for what is to be served", _none,
        "KV over TCP took 1,800 ms where RDMA took 0.16 ms (dynamo#1314)",
        "https://github.com/ai-dynamo/dynamo/issues/1314",
        "mend the fabric, serve aggregated on one host, or say accept_tcp: true in the deployment",
    ),
)  # fmt: skip

OPT_IN: tuple[Row[World], ...] = (
    Row(
        "IB-15", "Two hosts reach the rate of their ports", _pair_test,
        "90 % of the rate is what a good rail gives; below 75 % a rail map or ACS is wrong",
        "https://github.com/Azure/azurehpc-health-checks",
        "compare the rail map of both hosts (same switch plane a rail), then ACS (IB-10) and the "
        "port's counters (IB-07); again: bringup probe.pair --from HOST --to HOST",
    ),
)  # fmt: skip
