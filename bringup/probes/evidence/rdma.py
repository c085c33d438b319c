"""What ibstat, rdma, ibdev2netdev and sysfs told of RDMA devices and their ports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.reading import Known
from ..hca import Sighting
from ..infiniband import InfiniBand
from ..rdma import LinkCounters
from ..readers import infiniband
from ..text import decimal, whole
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known, unknown

Sightings = tuple[Sighting, ...]
"""What one command saw of RDMA devices; all are joined by device in the end."""

_NONE = (
    r"No IB devices found|No such file or directory.*infiniband|Failed to get IB device"
    r"|can't list (?:CA|IB device) names|can't init UMAD library"
)


def _seen(found: Sightings, line: str) -> Iterator[Piece]:
    if found:
        yield Piece(Sighting, Known(found, line))


def read_ib(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ibstat`, `ibv_devinfo`, `ibv_devices`, `rdma link`."""
    if output.is_missing or output.is_late:
        return
    if re.search(_NONE, output.text):
        yield absent(InfiniBand, output.line)
        return
    if output.code != 0 and (said := re.search(r"ib(?:panic|warn): .*", output.text)):
        yield unknown(InfiniBand, f"{asked.program} failed", said[0])
        return
    reader = {
        "ibstat": infiniband.from_ibstat,
        "ibv_devinfo": infiniband.from_ibv_devinfo,
        "rdma": infiniband.from_rdma_link,
    }.get(asked.program)
    found = reader(output.stdout) if reader else _devices(output.stdout)
    yield from _seen(found, f"{asked.program}: {len(found)} RDMA devices")


def _devices(text: str) -> Sightings:
    """Read `ibv_devices`: a name and a GUID a line."""
    names = re.findall(r"(?m)^\s+([a-z]\w*\d)\s+[0-9a-f]{16}$", text)
    return tuple(Sighting(name) for name in names)


def read_ibstatus(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ibstatus`: ``Infiniband device 'mlx5_0' port 1 status:`` and lines below."""
    del asked
    blocks = re.split(r"(?m)^Infiniband device '(\w+)' port (\d+) status:", output.stdout)
    found = tuple(
        _status(name, int(number), body)
        for name, number, body in zip(blocks[1::3], blocks[2::3], blocks[3::3], strict=False)
    )
    yield from _seen(found, f"ibstatus: {len(found)} RDMA devices")


def _status(name: str, number: int, body: str) -> Sighting:
    told = dict(re.findall(r"(?m)^\s*([\w ]+?):\s+(.*?)\s*$", body))
    return Sighting(
        name,
        port=number,
        state=infiniband.state(told.get("state", "")),
        physical=told.get("phys state", "").rpartition(":")[2].strip(),
        rate_gb_s=decimal(told.get("rate", "").partition(" ")[0]),
        link_layer=told.get("link_layer", ""),
    )


def read_gids(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `show_gids`: which ports have a RoCE v2 address."""
    del asked
    rows = re.findall(
        r"(?m)^(\w+)\s+(\d+)\s+\d+\s+[0-9a-f:]{39}\s+(?:\S+\s+)?(v1|v2)\b", output.stdout
    )
    ports: dict[tuple[str, int], set[str]] = {}
    for name, port, version in rows:
        ports.setdefault((name, int(port)), set()).add(version)
    found = tuple(
        Sighting(name, port=port, gid="RoCE v2" if "v2" in versions else "", link_layer="Ethernet")
        for (name, port), versions in ports.items()
    )
    yield from _seen(found, output.line)


_COUNTER = re.compile(r"/sys/class/infiniband/(\w+)/ports/\d+/(?:hw_)?counters/(\w+)$")


def read_counter(path: str, output: Output) -> Iterator[Piece]:
    """Read one error counter; it is taken to stand since the driver was loaded, a day ago."""
    found, value = _COUNTER.search(path), whole(output.stdout.strip())
    if found and value is not None and output.code == 0:
        counters = LinkCounters(86400.0, {found[1]: {found[2]: value}})
        yield known(counters, f"{path}: {value}")


def read_ibdev2netdev(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ibdev2netdev [-v]`: ``mlx5_0 port 1 ==> ib0 (Up)``, with address and card before."""
    del asked
    rows = re.findall(
        r"(?m)^(?:([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d) )?(\w+) .*?\bport (\d+) .*?"
        r"==> (\S+) \((Up|Down)\)",
        output.stdout,
    )
    found = tuple(
        Sighting(
            name,
            bus_id=bus,
            netdev=net,
            port=int(port),
            state="ACTIVE" if up == "Up" else "DOWN",
        )
        for bus, name, port, net, up in rows
    )
    yield from _seen(found, output.line)


_PORT = re.compile(r"/sys/class/infiniband/(\w+)/ports/(\d+)/(\w+)$")
_DEVICE = re.compile(r"/sys/class/infiniband/(\w+)/(fw_ver|sys_image_guid|device/numa_node)$")


def read_sysfs(path: str, output: Output) -> Iterator[Piece]:
    """Read one file below /sys/class/infiniband."""
    value = output.stdout.strip()
    if output.code != 0 or not value or "\n" in value:
        return
    if found := _PORT.search(path):
        seen = _of_port(found[1], int(found[2]), found[3], value)
    elif found := _DEVICE.search(path):
        seen = _of_device(found[1], found[2], value)
    else:
        seen = None
    yield from _seen((seen,) if seen else (), f"{path}: {value}")


def _of_port(name: str, port: int, key: str, value: str) -> Sighting | None:
    """Return what a file says, where it is of the kernel's form."""
    if key == "state" and re.fullmatch(r"\d: [A-Z_]+", value):
        return Sighting(name, port=port, state=infiniband.state(value))
    if key == "phys_state" and re.fullmatch(r"\d: \w+", value):
        return Sighting(name, port=port, physical=value.partition(": ")[2])
    if key == "rate" and re.match(r"[\d.]+ Gb/sec\b", value):
        return Sighting(name, port=port, rate_gb_s=decimal(value.partition(" ")[0]))
    if key == "link_layer" and value in ("InfiniBand", "Ethernet"):
        return Sighting(name, port=port, link_layer=value)
    return None


def _of_device(name: str, key: str, value: str) -> Sighting | None:
    if key == "device/numa_node":
        return Sighting(name, numa=int(value)) if value.isdecimal() else None
    if not re.fullmatch(r"[\w.:]+", value):
        return None
    return Sighting(name, firmware=value) if key == "fw_ver" else Sighting(name, image_guid=value)


_NETDEV = re.compile(r"/sys/class/net/([\w.-]+)/(mtu|speed)$")


def read_netdev(path: str, output: Output) -> Iterator[Piece]:
    """Read the MTU or the speed in Mb/s of a network device; a speed of -1 tells nothing."""
    found, value = _NETDEV.search(path), whole(output.stdout.strip())
    if found and value is not None and value > 0 and output.code == 0:
        told = (value, None) if found[2] == "mtu" else (None, value / 1000)
        yield known(Netdevs({found[1]: told}), f"{path}: {value}")


def read_class(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls [-l] /sys/class/infiniband`, or links below it: `…/*/device`."""
    is_empty = output.code == 0 and not output.stdout.replace("total 0", "").strip()
    below = asked.path.rstrip("/").partition("/sys/class/infiniband/")[2]
    if below and not (below.startswith("*") and output.has_no_file):
        yield from _seen(tuple(_linked(output.stdout)), output.line)
    elif output.has_no_file and not output.stdout.strip():
        yield absent(InfiniBand, output.line)
    elif is_empty and not asked.is_cut:
        yield absent(InfiniBand, "/sys/class/infiniband is empty")
    elif output.code == 0:
        found = infiniband.from_ls(output.stdout)
        yield from _seen(found, f"/sys/class/infiniband: {len(found)} devices")


def _linked(text: str) -> Iterator[Sighting]:
    """Read ``/sys/class/infiniband/mlx5_0/device -> ../../../0000:18:00.0``."""
    rows = r"/sys/class/infiniband/(\w+)/device -> \S*?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)$"
    for name, bus in re.findall(rf"(?m){rows}", text):
        yield Sighting(name, bus_id=bus)
    for name in re.findall(r"(?m)^/sys/class/infiniband/([a-z]\w*\d)/?$", text):
        yield Sighting(name)


class Managed(tuple[str, ...]):
    """Devices whose VPD says SW_MNG; of the others it surely does not say so."""

    __slots__ = ()


def read_vpd(output: Output) -> Iterator[Piece]:
    """Read `grep -a -l SW_MNG /sys/class/infiniband/*/device/vpd`."""
    if output.code in (0, 1) and not output.is_refused:
        names = re.findall(r"/infiniband/([^/\s]+)/device/vpd", output.stdout)
        yield known(Managed(names), "VPD says SW_MNG")


_PERFQUERY = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
}
"""Counters by their names in `perfquery`."""


def read_perfquery(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `perfquery -C DEVICE`; as for sysfs, counters are taken to stand for a day."""
    rows = dict(re.findall(r"(?m)^(\w+):\.*(\d+)$", output.stdout))
    told = {ours: int(rows[its]) for its, ours in _PERFQUERY.items() if its in rows}
    device = asked.after("-C", "--Ca") or next((w for w in asked.operands if w[:1].isalpha()), "")
    if told and device:
        yield known(LinkCounters(86400.0, {device: told}), f"perfquery {device}")


def read_mlxlink(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `mlxlink -d DEVICE`: state, and what the firmware recommends."""
    device = asked.after("-d", "--device")
    found = re.search(r"(?m)^State\s*:\s*(\w+)", output.stdout)
    if found and re.fullmatch(r"[a-z]\w*\d", device):
        is_up = found[1] == "Active"
        seen = Sighting(
            device,
            state="ACTIVE" if is_up else "DOWN",
            physical={"Active": "LinkUp", "Disable": "Disabled"}.get(found[1], found[1]),
        )
        yield from _seen((seen,), output.line)


class Netdevs(dict[str, tuple[int | None, float | None]]):
    """MTU and rate in Gb/s of network devices, by name; None where it was not told."""


def read_ip(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ip link` or `ip addr`: the MTU of each network device."""
    del asked
    rows = re.findall(r"(?m)^\d+: ([^:@\s]+)(?:@\S+)?: <[^>]*> mtu (\d+)", output.stdout)
    if rows:
        yield known(Netdevs({name: (int(mtu), None) for name, mtu in rows}), output.line)


def read_ethtool(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ethtool DEVICE`: its speed."""
    found = re.search(r"(?m)^\s*Speed: (\d+)Mb/s$", output.stdout)
    if found and asked.path:
        yield known(Netdevs({asked.path: (None, int(found[1]) / 1000)}), f"{asked.path} {found[0]}")


READERS: Readers = {
    **dict.fromkeys(("ibstat", "ibv_devinfo", "ibv_devices", "rdma"), read_ib),
    "ibdev2netdev": read_ibdev2netdev,
    "ibstatus": read_ibstatus,
    "show_gids": read_gids,
    "perfquery": read_perfquery,
    "mlxlink": read_mlxlink,
    "ip": read_ip,
    "ethtool": read_ethtool,
}
