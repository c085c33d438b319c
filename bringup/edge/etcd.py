"""A small etcd client: the v3 API over its JSON gateway, with nothing but HTTP.

Source: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/ (paths under /v3 since etcd 3.4).
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from ..core.errors import ToolError, Unreachable, UsageError
from ..core.reading import Known, Reading, Unknown
from ..core.words import Secret
from . import http


@dataclass(frozen=True, slots=True)
class Entry:
    """One key. `lease` is 0 for a key that outlives its maker; revisions count etcd's writes."""

    key: str
    value: bytes
    lease: int = 0
    created: int = 0  # revision
    changed: int = 0  # revision


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease: keys under it vanish when `seconds_left` reaches 0; below 0 it is gone."""

    id: int
    seconds: int
    seconds_left: int


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the cluster, as the cluster knows it. A name of "" has not started yet."""

    id: str
    name: str
    client_urls: tuple[str, ...]
    peer_urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """What one endpoint says of itself. `leader` is "" while the cluster has none."""

    endpoint: str
    version: str
    member: str
    leader: str
    bytes_used: int
    errors: tuple[str, ...] = ()


def tls(*, ca_file: str = "", cert_file: str = "", key_file: str = "") -> ssl.SSLContext:
    """Return a TLS context that trusts one authority and shows a client certificate.

    Raises UsageError when a file is missing or holds something else.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
        if cert_file:
            context.load_cert_chain(cert_file, key_file or None)
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(name for name in (ca_file, cert_file, key_file) if name)
        raise UsageError(f"cannot use the TLS files {names}: {error}") from error
    return context


@dataclass(slots=True)
class Etcd:
    """One cluster. Endpoints are asked in order until one answers.

    All calls raise Unreachable when no endpoint answers, ToolError when etcd refuses.
    """

    endpoints: tuple[str, ...]
    user: str = ""
    password: Secret | None = None
    seconds: float = 5.0
    opener: http.Opener = http.direct
    context: ssl.SSLContext | None = None
    _token: str = field(default="", repr=False)

    def range(self, prefix: str) -> tuple[Entry, ...]:
        """Return all entries under a prefix, by key. "" means everything."""
        end = _after(prefix.encode()) if prefix else b"\0"
        answer = self._call(
            "kv/range", {"key": _base64(prefix.encode() or b"\0"), "range_end": _base64(end)}
        )
        return tuple(_entry(row) for row in answer.get("kvs", ()))

    def get(self, key: str) -> Entry | None:
        """Return one entry, or None where etcd surely has no such key."""
        rows = self._call("kv/range", {"key": _base64(key.encode())}).get("kvs", ())
        return _entry(rows[0]) if rows else None

    def put(self, key: str, value: bytes, *, lease: int = 0) -> None:
        """Set a key, bound to a lease where one is given."""
        wish = {"key": _base64(key.encode()), "value": _base64(value), "lease": str(lease)}
        self._call("kv/put", wish)

    def delete(self, key: str, *, prefix: bool = False) -> int:
        """Delete a key, or all keys under it as a prefix; return how many there were."""
        if not key:
            raise UsageError("cannot delete an empty key: it would mean everything in etcd")
        wish = {"key": _base64(key.encode())}
        if prefix:
            wish["range_end"] = _base64(_after(key.encode()))
        return int(self._call("kv/deleterange", wish).get("deleted", 0))

    def grant(self, seconds: int) -> Lease:
        """Make a lease that ends after some seconds unless it is kept alive."""
        answer = self._call("lease/grant", {"TTL": str(seconds)})
        return Lease(int(answer["ID"]), int(answer["TTL"]), int(answer["TTL"]))

    def keep(self, lease: int) -> Lease:
        """Start a lease's time anew; `seconds_left` is 0 when it was gone already."""
        said = self._call("lease/keepalive", {"ID": str(lease)}).get("result", {})
        left = int(said.get("TTL", 0))
        return Lease(lease, left, left)

    def lease(self, lease: int) -> Lease:
        """Return how much time a lease has left."""
        answer = self._call("lease/timetolive", {"ID": str(lease)})
        return Lease(lease, int(answer.get("grantedTTL", 0)), int(answer.get("TTL", 0)))

    def revoke(self, lease: int) -> None:
        """End a lease and with it all keys bound to it."""
        self._call("lease/revoke", {"ID": str(lease)})

    def members(self) -> tuple[Member, ...]:
        """Return the members of the cluster, by name."""
        rows = self._call("cluster/member/list", {}).get("members", ())
        return tuple(sorted((_member(row) for row in rows), key=lambda m: (m.name, m.id)))

    def status(self) -> Mapping[str, Reading[EndpointStatus]]:
        """Return what each endpoint says of itself; one that does not answer is unknown."""
        return {endpoint: self._status(endpoint) for endpoint in self.endpoints}

    def health(self) -> Mapping[str, Reading[bool]]:
        """Return each endpoint's own word on its health; one that does not answer is unknown."""
        return {endpoint: self._health(endpoint) for endpoint in self.endpoints}

    def _status(self, endpoint: str) -> Reading[EndpointStatus]:
        try:
            answer = self._post(endpoint, "maintenance/status", {})
        except ToolError as error:
            return Unknown(error.message)
        leader = str(answer.get("leader", ""))
        return Known(
            EndpointStatus(
                endpoint,
                str(answer.get("version", "")),
                str(answer.get("header", {}).get("member_id", "")),
                "" if leader == "0" else leader,
                int(answer.get("dbSize", 0)),
                tuple(str(error) for error in answer.get("errors", ())),
            )
        )

    def _health(self, endpoint: str) -> Reading[bool]:
        try:
            answer = self._ask(endpoint, "/health")
        except ToolError as error:
            return Unknown(error.message)
        match answer.document:
            case Known({"health": "true" | True}, evidence):
                return Known(True, evidence)
            case Known({"health": "false" | False}, evidence):
                return Known(False, evidence)
        return Unknown(f"no health in the answer of {endpoint}", answer.text[:200])

    def _call(self, path: str, wish: Mapping[str, str]) -> dict[str, Any]:
        """Ask the endpoints in turn; only a connection that fails leads to the next one."""
        if not self.endpoints:
            raise UsageError("cannot ask etcd: no endpoint is given")
        lost: list[str] = []
        for endpoint in self.endpoints:
            try:
                return self._post(endpoint, path, wish)
            except Unreachable as error:
                lost.append(error.message)
        raise Unreachable(
            f"cannot reach etcd at {', '.join(self.endpoints)}",
            said="\n".join(lost),
            remedy=f"look from where this runs: curl -s {self.endpoints[0]}/health",
        )

    def _post(self, endpoint: str, path: str, wish: Mapping[str, str]) -> dict[str, Any]:
        """Ask one endpoint, logged in where a user is set; a token that ran out is renewed once."""
        body = json.dumps(wish).encode()
        if self.user and not self._token:
            self._token = self._log_in(endpoint)
        answer = self._ask(endpoint, f"/v3/{path}", body, self._token)
        if self.user and answer.status == HTTPStatus.UNAUTHORIZED:
            self._token = self._log_in(endpoint)
            answer = self._ask(endpoint, f"/v3/{path}", body, self._token)
        return _understood(endpoint, path, answer)

    def _log_in(self, endpoint: str) -> str:
        password = self.password.reveal if self.password else ""
        body = json.dumps({"name": self.user, "password": password}).encode()
        answer = self._ask(endpoint, "/v3/auth/authenticate", body)
        return str(_understood(endpoint, "auth/authenticate", answer).get("token", ""))

    def _ask(
        self, endpoint: str, path: str, body: bytes | None = None, token: str = ""
    ) -> http.Answer:
        return http.ask(
            endpoint.rstrip("/") + path,
            method="POST" if body else "GET",
            body=body,
            headers={"Authorization": token} if token else {},
            seconds=self.seconds,
            opener=self.opener,
            tls=self.context,
        )


def _understood(endpoint: str, path: str, answer: http.Answer) -> dict[str, Any]:
    """Return the answer's object. Raises ToolError for a refusal or for something else's answer."""
    document = answer.document
    said = answer.text[:500]
    if answer.status != HTTPStatus.OK:
        raise ToolError(f"cannot {path} at {endpoint}: etcd says HTTP {answer.status}", said=said)
    if not isinstance(document, Known) or not isinstance(document.value, dict):
        raise ToolError(
            f"cannot {path} at {endpoint}: the answer is not etcd's",
            said=said,
            remedy=f"check that {endpoint} is an etcd client URL",
        )
    return document.value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _after(prefix: bytes) -> bytes:
    """Return the first key after all keys with a prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else b"\0"


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(
        base64.b64decode(row["key"]).decode(errors="replace"),
        base64.b64decode(row.get("value", "")),
        int(row.get("lease", 0)),
        int(row.get("create_revision", 0)),
        int(row.get("mod_revision", 0)),
    )


def _member(row: Mapping[str, Any]) -> Member:
    return Member(
        str(row.get("ID", "")),
        str(row.get("name", "")),
        tuple(str(url) for url in row.get("clientURLs", ())),
        tuple(str(url) for url in row.get("peerURLs", ())),
    )
