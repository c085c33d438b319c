"""What ss, nc, curl and etcdctl told of ports and services."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...core.reading import Known, Reading, Unknown
from ..network import Listener, Listeners, Names, Reach
from ..services import Etcd, EtcdMember, Nats, health_of
from ..serving import NO_ANSWER, Serving
from .asked import Asked, Output
from .piece import Piece, Readers, known, unknown


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
    if path.startswith(REQUESTS) and output.code not in (6, 7):
        yield from _answer(output)
    elif output.code in (6, 7, 28, 52, 56):
        yield from _unanswered(output, endpoint, target, path)
    elif path.endswith("/v1/models"):
        yield from _models(output)
    elif path == "/health" and found[3] in ("2379", "2380"):
        yield known(Etcd((EtcdMember(endpoint, health_of(200, output.stdout)),)), output.line)
    elif path.endswith(("/health", "/live")):
        yield from _health(output, endpoint)


def _answer(output: Output) -> Iterator[Piece]:
    """How a request ended tells of the workers behind a port that answers."""
    status = re.search(r"(?m)^(?:HTTP/[\d.]+ )?([2345]\d\d)\b", output.stdout)
    if output.code == 28:
        yield known(Serving(answer=NO_ANSWER), output.line)
    elif status:
        yield known(Serving(answer=f"HTTP {status[1]}"), output.line)


def _unanswered(output: Output, endpoint: str, target: str, path: str) -> Iterator[Piece]:
    met = {6: "the name does not resolve", 7: "refused", 28: "timeout"}.get(output.code, "closed")
    yield known(Reach({target: met}), output.line or f"{target}: {met}")
    if path.endswith("/v1/models"):
        models: Reading[tuple[str, ...]] = Unknown(f"{target}: {met}", output.line)
        yield known(Serving(models=models), output.line or f"{target}: {met}")
    if target.endswith(":2379"):
        health: Reading[bool] = Unknown(f"{target}: {met}", output.line)
        yield known(Etcd((EtcdMember(endpoint, health),)), output.line or f"{target}: {met}")


KEYS = ("v1/", "v1/instances", "v1/instances/")
REQUESTS = ("/v1/chat/completions", "/v1/completions")


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
    if asked.has("get") and any(word in KEYS for word in asked.operands) and output.code == 0:
        yield _registered(output)


def _registered(output: Output) -> Piece:
    """Workers by the keys that they hold in etcd."""
    keys = re.findall(r"(?m)^/?v1/instances/[^/\s]+/([^/\s]+)/([^/\s]+)/", output.stdout)
    names = tuple(dict.fromkeys("/".join(key) for key in keys))
    return known(Serving(instances=Known(names, output.line)), output.line or "no key")


def read_nats(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nats server check connection` or `nats rtt`: an answer, or a refusal."""
    del asked
    if "no servers available" in output.text or "connection refused" in output.text:
        yield unknown(Nats, output.line, output.line)


READERS: Readers = {
    **dict.fromkeys(("ss", "netstat"), read_ss),
    "nc": read_nc,
    "getent": read_getent,
    "curl": read_curl,
    "etcdctl": read_etcdctl,
    "nats": read_nats,
}
