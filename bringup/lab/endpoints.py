"""Practice etcd and NATS: they answer what a look at a healthy server asks, and nothing else.

Nothing registers here. The tests of serving use the real ones.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable

SERVICES = ("etcd", "nats")
"""Services that the practice fleet offers on loopback, one port each."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

ETCD = {
    "/health": {"health": "true"},
    "/version": {"etcdserver": "3.5.21", "etcdcluster": "3.5.0"},
    "/v3/maintenance/status": {
        "header": {"cluster_id": "1", "member_id": "1", "revision": "1", "raft_term": "2"},
        "version": "3.5.21",
        "dbSize": "25600",
        "leader": "1",
        "raftIndex": "4",
        "raftTerm": "2",
    },
}

NATS = {
    "server_id": "NPRACTICE",
    "server_name": "practice",
    "version": "2.10.29",
    "proto": 1,
    "host": "127.0.0.1",
    "headers": True,
    "max_payload": 1048576,
    "jetstream": True,
}


async def start(bound: dict[str, socket.socket]) -> list[asyncio.Server]:
    """Answer on each service's socket; the servers end when they are closed."""
    serves: dict[str, Serve] = {"etcd": _etcd, "nats": _nats}
    return [await asyncio.start_server(serves[name], sock=sock) for name, sock in bound.items()]


async def _etcd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one HTTP request as etcd's gateway does."""
    try:
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n"), 10)).split()
        path = head[1].decode("latin-1") if len(head) > 1 else ""
        body = json.dumps(ETCD.get(path, {"code": 5, "message": "Not Found"})).encode()
        status = b"200 OK" if path in ETCD else b"404 Not Found"
        lines = (b"HTTP/1.0 " + status, b"Content-Type: application/json", b"", body)
        writer.write(b"\r\n".join(lines))
        await writer.drain()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # whoever asked has gone
    finally:
        writer.close()


async def _nats(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Greet as NATS does, and wait for the other side to go."""
    try:
        writer.write(b"INFO " + json.dumps(NATS).encode() + b" \r\n")
        await writer.drain()
        await asyncio.wait_for(reader.read(4096), 10)
    except (OSError, TimeoutError):
        pass
    finally:
        writer.close()
