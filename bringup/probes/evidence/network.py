"""What ibstat, rdma, ss, curl and etcdctl told of RDMA devices, ports and services."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...core.reading import Known, Reading, Unknown
from ..hca import Sighting
from ..infiniband import InfiniBand
from ..network import Listener, Listeners, Names, Reach
from ..rdma import LinkCounters
from ..readers import infiniband
from ..services import Etcd, EtcdMember, Nats, health_of
from ..serving import Serving
from ..text import decimal, whole
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known, unknown

Sightings = tuple[Sighting, ...]
"""What one command saw of RDMA devices; all are joined by device in the end."""

_NONE = r"No IB devices found|No such file or directory.*infiniband|Failed to get IB device"


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
    """Read `ibdev2netdev`: ``mlx5_0 port 1 ==> ib0 (Up)``."""
    del asked
    rows = re.findall(r"(?m)^(\w+) port (\d+) ==> (\S+) \((Up|Down)\)", output.stdout)
    found = tuple(
        Sighting(name, netdev=net, port=int(port), state="ACTIVE" if up == "Up" else "DOWN")
        for name, port, net, up in rows
    )
    yield from _seen(found, output.line)


_PORT = re.compile(r"/sys/class/infiniband/(\w+)/ports/(\d+)/(\w+)$")
_DEVICE = re.compile(r"/sys/class/infiniband/(\w+)/(fw_ver|sys_image_guid)$")


def read_sysfs(path: str, output: Output) -> Iterator[Piece]:
    """Read one file below /sys/class/infiniband."""
    value = output.stdout.strip()
    if output.code != 0 or not value or "\n" in value:
        return
    if found := _PORT.search(path):
        name, port, key = found[1], int(found[2]), found[3]
        bare = value.rpartition(":")[2].strip()
        seen = {
            "state": Sighting(name, port=port, state=infiniband.state(value)),
            "phys_state": Sighting(name, port=port, physical=bare),
            "rate": Sighting(name, port=port, rate_gb_s=decimal(value.partition(" ")[0])),
            "link_layer": Sighting(name, port=port, link_layer=value),
        }.get(key)
        yield from _seen((seen,) if seen else (), f"{path}: {value}")
    elif found := _DEVICE.search(path):
        key = {"fw_ver": "firmware", "sys_image_guid": "image_guid"}[found[2]]
        yield from _seen((Sighting(found[1], **{key: value}),), f"{path}: {value}")  # type: ignore[arg-type]  # both are str


def read_many(paths: tuple[str, ...], output: Output) -> Iterator[Piece]:
    """Read several sysfs files as grep prints them: ``PATH:VALUE``."""
    for line in output.stdout.splitlines():
        path, colon, value = line.partition(":")
        if colon and path.startswith("/sys/class/infiniband/"):
            yield from read_sysfs(path, Output(0, value))
    del paths


def read_class(output: Output) -> Iterator[Piece]:
    """Read `ls [-l] /sys/class/infiniband`."""
    if output.has_no_file:
        yield absent(InfiniBand, output.line)
    elif output.code == 0 and not output.stdout.replace("total 0", "").strip():
        yield absent(InfiniBand, "/sys/class/infiniband is empty")
    elif output.code == 0:
        found = infiniband.from_ls(output.stdout)
        yield from _seen(found, f"/sys/class/infiniband: {len(found)} devices")


class Managed(tuple[str, ...]):
    """Devices whose VPD says SW_MNG; of the others it surely does not say so."""

    __slots__ = ()


def read_vpd(output: Output) -> Iterator[Piece]:
    """Read `grep -a -l SW_MNG /sys/class/infiniband/*/device/vpd`."""
    if output.code in (0, 1) and not output.is_refused:
        names = re.findall(r"/infiniband/([^/\s]+)/device/vpd", output.stdout)
        yield known(Managed(names), "VPD says SW_MNG")


def read_ss(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ss -ltnp` or `netstat -ltnp`: ports that are taken."""
    rows = re.findall(
        r"(?m)^(?:LISTEN|tcp6?)\s+\d+\s+\d+\s+(\S+):(\d+)\s+\S+(?:\s+LISTEN)?(.*)$", output.stdout
    )
    found = tuple(_listener(*row) for row in rows)
    if found and not asked.is_counted:
        yield known(Listeners(found), output.line)


def _listener(address: str, port: str, rest: str) -> Listener:
    process = re.search(r'\("([^"]+)",pid=(\d+)|\s(\d+)/(\S+)', rest)
    name = (process[1] or process[4]) if process else ""
    pid = int(process[2] or process[3]) if process else None
    return Listener(int(port), address.strip("[]"), pid, name)


def read_nc(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nc -zv HOST PORT`: open, refused, or dropped."""
    place = [word for word in asked.operands if not word.isdecimal() or int(word) > 60]
    if len(place) < 2 or not place[-1].isdecimal():
        return
    target = f"{place[-2]}:{place[-1]}"
    text = output.text.lower()
    if output.code == 0 or "succeeded" in text or "open" in text:
        met = "open"
    elif "refused" in text:
        met = "refused"
    else:
        met = "timeout" if "timed out" in text or output.is_late else output.line
    yield known(Reach({target: met}), output.line)
    if target.endswith(":4222") and met != "open":
        yield unknown(Nats, f"{target}: {met}", output.line)


def read_getent(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `getent hosts NAME`."""
    name = asked.path
    if output.is_missing or name in ("hosts", ""):
        return
    addresses = tuple(re.findall(r"(?m)^([0-9a-fA-F.:]+)\s", output.stdout))
    yield known(Names({name: addresses}), output.line or f"{name} does not resolve")


def read_curl(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `curl URL`: etcd's health, the frontend's model list and instances, a refusal."""
    url = next((word for word in asked.words if re.match(r"https?://", word)), "")
    found = re.match(r"(https?://([^/:]+)(?::(\d+))?)(/[^?\s]*)?", url)
    if not found:
        return
    endpoint, path = found[1], (found[4] or "/").rstrip("/")
    target = f"{found[2]}:{found[3] or ('443' if url.startswith('https') else '80')}"
    if output.code in (6, 7, 28, 52, 56):
        yield from _unanswered(output, endpoint, target)
    elif path.endswith("/v1/models"):
        yield from _models(output)
    elif path == "/health" and found[3] in ("2379", "2380"):
        yield known(Etcd((EtcdMember(endpoint, health_of(200, output.stdout)),)), output.line)
    elif path.endswith(("/health", "/live")):
        yield from _health(output, endpoint)


def _unanswered(output: Output, endpoint: str, target: str) -> Iterator[Piece]:
    met = {6: "the name does not resolve", 7: "refused", 28: "timeout"}.get(output.code, "closed")
    yield known(Reach({target: met}), output.line or f"{target}: {met}")
    if target.endswith(":2379"):
        health: Reading[bool] = Unknown(f"{target}: {met}", output.line)
        yield known(Etcd((EtcdMember(endpoint, health),)), output.line or f"{target}: {met}")


def _object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _models(output: Output) -> Iterator[Piece]:
    data = _object(output.stdout).get("data")
    if isinstance(data, list):
        names = tuple(str(row.get("id")) for row in data if isinstance(row, dict))
        yield known(Serving(models=Known(names, output.line)), output.line)


def _health(output: Output, endpoint: str) -> Iterator[Piece]:
    told = _object(output.stdout)
    if told.get("health") in ("true", "false"):
        yield known(Etcd((EtcdMember(endpoint, health_of(200, output.stdout)),)), output.line)
    instances = told.get("instances")
    if isinstance(instances, list):
        names = tuple(
            f"{row.get('component')}/{row.get('endpoint')}"
            for row in instances
            if isinstance(row, dict)
        )
        yield known(Serving(instances=Known(names, output.line)), output.line)


def read_etcdctl(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `etcdctl endpoint health|status`, `alarm list`, `get --prefix`."""
    rows = re.findall(r"(?m)^(https?://\S+|\S+:\d+) is (healthy|unhealthy)", output.text)
    alarms = tuple(re.findall(r"alarm:\s*(\w+)", output.stdout)) if asked.has("alarm") else ()
    if alarms:
        end = asked.after("--endpoints") or "etcd"
        member = EtcdMember(end, Known(True, output.line), alarms=alarms)
        yield known(Etcd((member,)), output.line)
    if rows:
        members = tuple(
            EtcdMember(end, Known(word == "healthy", f"{end} is {word}")) for end, word in rows
        )
        yield known(Etcd(members), output.line)


def read_nats(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nats server check connection` or `nats rtt`: an answer, or a refusal."""
    del asked
    if "no servers available" in output.text or "connection refused" in output.text:
        yield unknown(Nats, output.line, output.line)


READERS: Readers = {
    **dict.fromkeys(("ibstat", "ibv_devinfo", "ibv_devices", "rdma"), read_ib),
    "ibdev2netdev": read_ibdev2netdev,
    "ibstatus": read_ibstatus,
    "show_gids": read_gids,
    **dict.fromkeys(("ss", "netstat"), read_ss),
    "nc": read_nc,
    "getent": read_getent,
    "curl": read_curl,
    "etcdctl": read_etcdctl,
    "nats": read_nats,
}
