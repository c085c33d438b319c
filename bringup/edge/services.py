"""etcd and NATS through a channel of the host's SSH connection: nothing is needed on the host."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable
from dataclasses import replace

from ..core.errors import ToolError
from ..core.facts import Facts
from ..core.host import Services
from ..core.reading import Known, Reading, Unknown
from ..probes import services as seen
from . import http
from .etcd import Etcd

KEY = "bringup/probe/"
"""Prefix of the key that a write test puts, under a lease, and deletes again."""

LEASE_S = 30
ANSWER_S = 6.0
"""Most seconds for one answer. It takes milliseconds, and seconds on a controller that is busy: a
server that is only late is not to be told as dead."""
CAP_BYTES = 64 * 1024


def look(
    opener: http.Opener, services: Services, *, seconds: float = ANSWER_S, write_as: str = ""
) -> Facts:
    """Return what a host sees of the services that a deployment names.

    `opener` connects from the host. With `write_as`, a name for the key, each etcd endpoint is also
    asked to put, lease and delete; without it nothing is written.
    """
    facts = Facts()
    if services.etcd:
        facts = facts.replace(seen.Etcd, etcd(opener, services.etcd, seconds, write_as))
    if services.nats:
        facts = facts.replace(seen.Nats, nats(opener, services.nats, seconds))
    return facts


def etcd(
    opener: http.Opener, endpoints: Iterable[str], seconds: float = ANSWER_S, write_as: str = ""
) -> Reading[seen.Etcd]:
    """Ask every endpoint for its health and status, and for a write where one is named."""
    members = tuple(_member(opener, endpoint, seconds, write_as) for endpoint in endpoints)
    said = ", ".join(f"{m.endpoint} {seen.word(m.health)}" for m in members)
    return Known(seen.Etcd(members), said) if members else Unknown("no etcd endpoint is named")


def _member(opener: http.Opener, endpoint: str, seconds: float, write_as: str) -> seen.EtcdMember:
    base = endpoint.rstrip("/")
    health, told = _health(opener, base, seconds), "{}"
    if isinstance(health, Known):
        with contextlib.suppress(ToolError):
            told = http.ask(
                f"{base}/v3/maintenance/status",
                method="POST", body=b"{}", seconds=seconds, opener=opener,
            ).text  # fmt: skip
    member = seen.status_of(endpoint, health, seen.document(told))
    if not write_as or not isinstance(health, Known):
        return member
    return replace(member, milliseconds=_write(opener, base, seconds, write_as))


def _health(opener: http.Opener, base: str, seconds: float) -> Reading[bool]:
    try:
        answer = http.ask(f"{base}/health", seconds=seconds, opener=opener)
    except ToolError as error:
        return Unknown(seen.met(None, error.message), error.message)
    return seen.health_of(0, answer.text)


def _write(opener: http.Opener, base: str, seconds: float, name: str) -> Reading[float]:
    """Put a key under a lease, delete it, end the lease; return how long all that took."""
    client = Etcd((base,), seconds=seconds, opener=opener)
    start = time.perf_counter()
    try:
        lease = client.grant(LEASE_S).id
        client.put(KEY + name, b"probe", lease=lease)
        client.delete(KEY + name)
        client.revoke(lease)
    except ToolError as error:
        return Unknown(error.message, error.said[:200])
    took = (time.perf_counter() - start) * 1000
    return Known(took, f"put, lease and delete took {took:.0f} ms")


def nats(opener: http.Opener, endpoint: str, seconds: float = ANSWER_S) -> Reading[seen.Nats]:
    """Read the line with which a NATS server greets."""
    host, port, _ = seen.place(endpoint, 4222)
    try:
        with contextlib.closing(opener(host, port, seconds)) as connection:
            text = _line(connection, seconds)
    except (OSError, ToolError) as error:
        return Unknown(seen.met(None, _said(error)), _said(error))
    return seen.nats_of(endpoint, 0, text)


def _line(connection: socket.socket, seconds: float) -> str:
    connection.settimeout(seconds)
    data = b""
    while b"\n" not in data and len(data) < CAP_BYTES:
        piece = connection.recv(4096)
        if not piece:
            break
        data += piece
    return data.decode(errors="replace")


def _said(error: Exception) -> str:
    return "timed out" if isinstance(error, TimeoutError) else str(error)
