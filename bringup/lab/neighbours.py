"""What else is on the practice network: etcd, NATS and a frontend, at documentation addresses.

Small stand-ins that listen on loopback. They answer what bringup asks before a worker starts:
etcd's JSON gateway with a store in memory, the greeting of NATS, a frontend without models.
Hosts reach them by the addresses in the deployments; the server maps those to loopback.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

Kind = Literal["etcd", "nats", "frontend"]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Network = dict[str, dict[str, int]]
"""Loopback ports by address and port on the practice network."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One service of the practice network."""

    address: str
    port: int
    kind: Kind


@dataclass(slots=True)
class Store:
    """The keys of one etcd cluster, shared by its members."""

    revision: int = 1
    leases: int = 1000
    entries: dict[bytes, dict[str, str]] = field(default_factory=dict)

    def answer(self, path: str, wish: Mapping[str, str]) -> dict[str, Any] | None:
        """Return what etcd's gateway says to a call, or None for one that it does not know.

        Shapes: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/
        """
        calls: dict[str, Callable[[Mapping[str, str]], dict[str, Any]]] = {
            "kv/range": self._range,
            "kv/put": self._put,
            "kv/deleterange": self._delete,
            "lease/grant": self._grant,
            "lease/revoke": self._revoke,
            "lease/keepalive": lambda wish: {"result": {"ID": wish["ID"], "TTL": "30"}},
        }
        call = calls.get(path.removeprefix("/v3/"))
        return call(wish) if call else None

    def _meant(self, wish: Mapping[str, str]) -> list[bytes]:
        first = base64.b64decode(wish.get("key", ""))
        end = base64.b64decode(wish.get("range_end", ""))
        if not end:
            return [first] if first in self.entries else []
        return sorted(key for key in self.entries if key >= first and (end == b"\0" or key < end))

    def _range(self, wish: Mapping[str, str]) -> dict[str, Any]:
        rows = [self.entries[key] for key in self._meant(wish)]
        return {"kvs": rows, "count": str(len(rows))} if rows else {}

    def _put(self, wish: Mapping[str, str]) -> dict[str, Any]:
        self.revision += 1
        key = base64.b64decode(wish["key"])
        made = self.entries.get(key, {}).get("create_revision", str(self.revision))
        self.entries[key] = {
            "key": wish["key"], "value": wish.get("value", ""), "lease": wish.get("lease", "0"),
            "create_revision": made, "mod_revision": str(self.revision), "version": "1",
        }  # fmt: skip
        return {}

    def _delete(self, wish: Mapping[str, str]) -> dict[str, Any]:
        gone = [self.entries.pop(key) for key in self._meant(wish)]
        return {"deleted": str(len(gone))} if gone else {}

    def _grant(self, wish: Mapping[str, str]) -> dict[str, Any]:
        self.leases += 1
        return {"ID": str(self.leases), "TTL": str(wish.get("TTL", "60"))}

    def _revoke(self, wish: Mapping[str, str]) -> dict[str, Any]:
        bound = [key for key, row in self.entries.items() if row["lease"] == str(wish.get("ID"))]
        for key in bound:
            del self.entries[key]
        return {}


async def start(wanted: tuple[Neighbour, ...], before: Network) -> tuple[list[Any], Network]:
    """Listen for every neighbour; return the servers, and where each one is on loopback."""
    store, servers, found = Store(), list[Any](), Network()
    for number, each in enumerate(wanted, start=1):
        old = before.get(each.address, {}).get(str(each.port), 0)
        server = await _listen(_handler(each, number, store), old)
        servers.append(server)
        port = server.sockets[0].getsockname()[1]
        found.setdefault(each.address, {})[str(each.port)] = port
    return servers, found


async def _listen(handler: Handler, port: int) -> asyncio.Server:
    try:
        return await asyncio.start_server(handler, "127.0.0.1", port)
    except OSError:
        return await asyncio.start_server(handler, "127.0.0.1", 0)


def _handler(each: Neighbour, number: int, store: Store) -> Handler:
    if each.kind == "nats":
        return partial(_greet, each)
    answer = partial(_etcd, number, store) if each.kind == "etcd" else _frontend
    return partial(_serve_http, answer)


Answer = Callable[[str, Mapping[str, str]], dict[str, Any] | None]


def _etcd(number: int, store: Store, path: str, wish: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what one member of the cluster says."""
    header = {
        "cluster_id": "7000", "member_id": str(7000 + number),
        "revision": str(store.revision), "raft_term": "2",
    }  # fmt: skip
    if path == "/health":
        return {"health": "true", "reason": ""}
    if path == "/version":
        return {"etcdserver": "3.5.21", "etcdcluster": "3.5.0"}
    if path == "/v3/maintenance/status":
        size = {"dbSize": "24576", "dbSizeInUse": "24576", "dbSizeQuota": "2147483648"}
        return {"header": header, "version": "3.5.21", "leader": "7001", **size}
    said = store.answer(path, wish)
    return None if said is None else {"header": header, **said}


def _frontend(path: str, _: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what a frontend says that no worker has registered with yet."""
    pages: dict[str, dict[str, Any]] = {
        "/health": {"status": "healthy", "endpoints": [], "instances": []},
        "/live": {"status": "live"},
        "/v1/models": {"object": "list", "data": []},
    }
    return pages.get(path)


async def _greet(
    each: Neighbour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Say what a NATS server says first, and answer its pings."""
    info = {
        "server_id": "PRACTICE", "server_name": "practice", "version": "2.10.22", "proto": 1,
        "host": each.address, "port": each.port, "headers": True, "max_payload": 1048576,
        "jetstream": True,
    }  # fmt: skip
    writer.write(f"INFO {json.dumps(info, separators=(',', ':'))} \r\n".encode())
    while line := await reader.readline():
        if line.strip().upper() == b"PING":
            writer.write(b"PONG\r\n")
    writer.close()


async def _serve_http(
    answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one request and close."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
        length = next(
            (line for line in head.lower().split("\r\n") if "content-length:" in line), ""
        )
        body = await reader.readexactly(int(length.partition(":")[2] or 0))
        said = answer(head.split()[1].partition("?")[0], json.loads(body or b"{}"))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, KeyError):
        writer.close()
        return
    text = json.dumps(said if said is not None else {"error": "not found", "code": 5})
    writer.write(
        f"HTTP/1.1 {'200 OK' if said is not None else '404 Not Found'}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        f"Connection: close\r\n\r\n{text}".encode()
    )
    await writer.drain()
    writer.close()
