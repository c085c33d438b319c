"""One HTTP request at a time over a socket that the caller may open, so that SSH can carry it.

No proxies, no redirects: hosts of a fleet are asked directly.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import Unreachable, UsageError
from ..core.reading import Known, Reading, Unknown
from .stream import secured

Opener = Callable[[str, int, float], socket.socket]
"""Opens a connection to host and port within seconds: a socket, or what serves as one."""

CAP_BYTES = 64 * 1024 * 1024
"""Most bytes that an answer may hold."""


def direct(host: str, port: int, seconds: float) -> socket.socket:
    """Open a plain connection from this machine."""
    return socket.create_connection((host, port), timeout=seconds)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. Header names are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def document(self) -> Reading[Any]:
        """The body as JSON data, or why it is none."""
        try:
            return Known(json.loads(self.body), self.text[:200])
        except ValueError:
            return Unknown(f"no JSON in the answer (HTTP {self.status})", self.text[:200])


def ask(
    url: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float = 5.0,
    opener: Opener = direct,
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """Send one request and return the answer, whatever its status.

    `seconds` limits the connection and every single wait for bytes. Raises UsageError for a URL
    that is none, Unreachable when no whole answer came back.
    """
    try:
        with connected(url, seconds=seconds, opener=opener, tls=tls) as (connection, path):
            connection.request(method, path, body=body, headers=dict(headers or {}))
            response = connection.getresponse()
            content = response.read(CAP_BYTES + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise unreachable(url, error) from error
    if len(content) > CAP_BYTES:
        raise Unreachable(f"cannot read {url}: the answer is over {CAP_BYTES} bytes")
    named = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, content, named)


@contextmanager
def connected(
    url: str, *, seconds: float, opener: Opener = direct, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[http.client.HTTPConnection, str]]:
    """Yield an open connection to where a URL leads, and the URL's path; close it at the end.

    Raises UsageError for a URL that is none, OSError where there is no way.
    """
    place = _parts(url)
    connection = http.client.HTTPConnection(place.host, place.port, timeout=seconds)
    try:
        connection.sock = _opened(place, seconds, opener, tls)
        yield connection, place.path
    finally:
        connection.close()


def unreachable(url: str, error: Exception) -> Unreachable:
    """Return the error for people when nothing usable came from a URL."""
    said = "timed out" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return Unreachable(f"cannot reach {url}: {said}")


@dataclass(frozen=True, slots=True)
class _Place:
    host: str
    port: int
    path: str
    secure: bool


def _parts(url: str) -> _Place:
    """Return where an http or https URL leads; the path keeps its query."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"cannot use {url!r} as a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"cannot use {url!r} as a URL: it has to start with http:// or https://")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    secure = parts.scheme == "https"
    return _Place(parts.hostname, port or (443 if secure else 80), path, secure)


def _opened(
    place: _Place, seconds: float, opener: Opener, tls: ssl.SSLContext | None
) -> socket.socket:
    """Return an open connection, under TLS where the URL says so."""
    plain = opener(place.host, place.port, seconds)
    if not place.secure:
        return plain
    try:
        return secured(plain, tls or ssl.create_default_context(), place.host)
    except BaseException:
        plain.close()
        raise
