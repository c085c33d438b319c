"""etcd and NATS as a host sees them, by the shell's own means or through an SSH channel.

The section texts here need one of bash, python3, perl, curl or nc on the host. Where none is
there, or TLS is in use, `edge.services` asks the same through the SSH connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..core.facts import Probe
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from ..core.words import quote
from .network import Reach
from .parts import NOT_ASKED
from .text import answered, rows, whole

QUOTA_BYTES = 2 * 1024**3
"""etcd's limit for its database unless its operator set another one
(https://etcd.io/docs/v3.5/op-guide/maintenance/#space-quota)."""


@dataclass(frozen=True, slots=True)
class EtcdMember:
    """One etcd endpoint as seen from the host. `health` is unknown where it did not answer.

    `leader` is "" while it knows none. `milliseconds` is what a put, lease and delete took where
    that was asked for.
    """

    endpoint: str
    health: Reading[bool]
    version: str = ""
    member: str = ""
    leader: str = ""
    bytes_used: int | None = None
    quota_bytes: int | None = None
    alarms: tuple[str, ...] = ()
    milliseconds: Reading[float] = NOT_ASKED


@dataclass(frozen=True, slots=True)
class Etcd:
    """All endpoints that the deployment names."""

    members: tuple[EtcdMember, ...]

    @property
    def healthy(self) -> tuple[EtcdMember, ...]:
        return tuple(m for m in self.members if m.health == Known(True, _evidence(m.health)))


def _evidence(reading: Reading[bool]) -> str:
    return reading.evidence


@dataclass(frozen=True, slots=True)
class Nats:
    """A NATS server by the INFO line with which it greets."""

    endpoint: str
    version: str
    jetstream: bool = False
    needs_login: bool = False
    needs_tls: bool = False
    max_payload: int | None = None


def place(endpoint: str, port: int) -> tuple[str, int, bool]:
    """Return host, port and whether TLS is meant, of a URL or of HOST:PORT; host "" for none."""
    text = endpoint if "://" in endpoint else f"tcp://{endpoint}"
    try:
        parts = urlsplit(text)
        host, given = parts.hostname or "", parts.port
    except ValueError:
        return "", port, False
    return host, given or port, parts.scheme in ("https", "tls", "wss")


# talk HOST PORT LINES: sends the text in $TEXT (with \r\n written so), prints what comes back.
_TALK = r"""
B=$(tool bash); Y=$(tool python3); L=$(tool perl); C=$(tool nc)
limit=
command -v timeout >/dev/null && limit='timeout -k 1 3'
talk() {
  if [ -n "$B" ]; then
    $limit "$B" -c 'exec 3<>"/dev/tcp/$1/$2" || exit 7; printf %b "$4" >&3
      head -n "$3" <&3' bash "$1" "$2" "$3" "$TEXT"
  elif [ -n "$Y" ]; then
    $limit "$Y" -c 'import socket, sys
h, p, n, t = sys.argv[1:]
try: s = socket.create_connection((h, int(p)), 3)
except OSError as e: print(e.strerror or e); sys.exit(7)
s.sendall(t.encode().decode("unicode_escape").encode("latin1"))
f = s.makefile("rb")
for _ in range(int(n)):
  l = f.readline()
  if not l: break
  sys.stdout.write(l.decode("utf8", "replace")); sys.stdout.flush()' "$1" "$2" "$3" "$TEXT"
  elif [ -n "$L" ]; then
    $limit "$L" -MIO::Socket::INET -e '$| = 1; ($h, $p, $n, $t) = @ARGV;
$s = IO::Socket::INET->new(PeerAddr => $h, PeerPort => $p, Timeout => 3) or do { print $!; exit 7 };
$t =~ s/\\r\\n/\r\n/g; print $s $t; while ($n-- > 0 and defined($l = <$s>)) { print $l }' \
      "$1" "$2" "$3" "$TEXT"
  elif [ -n "$C" ]; then
    { printf %b "$TEXT"; sleep 1; } | $limit "$C" "$1" "$2" | head -n "$3"
  else
    echo "no bash, python3, perl or nc"; return 69
  fi
}
flat() { tr -d '\000' | tr '\r\n\t' '   ' | cut -c 1-3000; }
reply() { # KIND ENDPOINT HOST PORT LINES TEXT
  TEXT=$6; t=$(talk "$3" "$4" "$5" 2>&1); rc=$?
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$rc" "$(printf '%s\n' "$t" | flat)"
}
"""


def _request(method: str, path: str, host: str, body: str = "") -> str:
    lines = [f"{method} {path} HTTP/1.0", f"Host: {host}"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\\r\\n".join((*lines, "", body))


def etcd_probe(endpoints: Iterable[str]) -> Probe[Etcd]:
    """Return the question for each etcd endpoint's health and status, all at once."""
    calls = "\n".join(_etcd_call(endpoint) for endpoint in endpoints)
    return Probe(
        "etcd", Etcd, f"{_TALK}{calls}\nwait\n", parse_etcd, seconds=9, volatile=True
    )  # fmt: skip


def _etcd_call(endpoint: str) -> str:
    host, port, is_secure = place(endpoint, 2379)
    where = quote(endpoint)
    if is_secure or not host:
        return f"printf 'health\\t%s\\t69\\tTLS\\n' {where}"
    words = [quote(host), quote(str(port)), "40"]
    health = quote(_request("GET", "/health", host))
    status = quote(_request("POST", "/v3/maintenance/status", host, "{}"))
    return (
        f"(reply health {where} {' '.join(words)} {health}) &\n"
        f"(reply status {where} {' '.join(words)} {status}) &"
    )


def parse_etcd(section: Section) -> Reading[Etcd]:
    """Return each endpoint's own word."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    told: dict[str, dict[str, tuple[int | None, str]]] = {}
    for key, endpoint, code, *rest in (row for row in rows(answer.value) if len(row) > 2):
        if key in ("health", "status"):
            told.setdefault(endpoint, {})[key] = (whole(code), rest[0] if rest else "")
    if not told:
        return Unknown("no etcd endpoint was asked", section.first)
    members = tuple(_member(endpoint, replies) for endpoint, replies in sorted(told.items()))
    return Known(Etcd(members), ", ".join(f"{m.endpoint} {word(m.health)}" for m in members))


def word(health: Reading[bool]) -> str:
    """Return the state of an endpoint in words."""
    if isinstance(health, Known):
        return "healthy" if health.value else "unhealthy"
    return health.why if isinstance(health, Unknown) else "absent"


def _member(endpoint: str, replies: Mapping[str, tuple[int | None, str]]) -> EtcdMember:
    health = health_of(*replies.get("health", (None, "")))
    return status_of(endpoint, health, document(replies.get("status", (None, ""))[1]))


def health_of(code: int | None, text: str) -> Reading[bool]:
    """Return what the answer to ``/health`` says: etcd writes "true" as a string."""
    told = document(text).get("health")
    if told in ("true", True):
        return Known(True, '{"health":"true"}')
    if told in ("false", False):
        return Known(False, text[-200:])
    return Unknown(met(code, text), text[:200])


def status_of(endpoint: str, health: Reading[bool], told: Mapping[str, Any]) -> EtcdMember:
    """Return a member from the JSON of ``/v3/maintenance/status``, whose numbers are strings."""
    header = told.get("header")
    leader = str(told.get("leader", ""))
    errors = told.get("errors")
    return EtcdMember(
        endpoint,
        health,
        version=str(told.get("version", "")),
        member=str(header.get("member_id", "")) if isinstance(header, dict) else "",
        leader="" if leader == "0" else leader,
        bytes_used=whole(str(told.get("dbSize", ""))),
        quota_bytes=whole(str(told.get("dbSizeQuota", ""))),
        alarms=tuple(str(error) for error in errors) if isinstance(errors, list) else (),
    )


def document(text: str) -> dict[str, Any]:
    """Return the JSON object at the end of an HTTP answer, or {}."""
    start = text.find("{")
    try:
        found = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_SAID = re.compile("No route to host|Network is unreachable|Name or service not known|not open: .*")


def met(code: int | None, text: str) -> str:
    """Return what a try to connect met: "open", "refused", "timeout", or the system's words."""
    if code in (124, 137) or "timed out" in text:
        return "timeout"
    if "efused" in text:
        return "refused"
    found = re.search(
        r"No route to host|Network is unreachable|Name or service not known|not open: .*", text
    )
    if found:
        return found[0]
    if code == 69:
        return "the host has no means to ask" if "no bash" in text else "TLS needs an SSH channel"
    return "open" if code == 0 else text[:120] or "no answer"


def is_unasked(why: str) -> bool:
    """Tell whether nobody could ask a service, which says nothing of the service itself."""
    return any(part in why for part in ("no means", "SSH channel", "allows no channel"))


def nats_probe(endpoint: str) -> Probe[Nats]:
    """Return the question for the line with which a NATS server greets."""
    host, port, _ = place(endpoint, 4222)
    call = f"reply nats {quote(endpoint)} {quote(host)} {quote(str(port))} 1 ''"
    return Probe("nats", Nats, f"{_TALK}{call}\n", parse_nats, seconds=6, volatile=True)


def parse_nats(section: Section) -> Reading[Nats]:
    """Return the server by its INFO line."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    row = next((row for row in rows(answer.value) if row[0] == "nats" and len(row) > 2), None)
    if row is None:
        return Unknown("NATS was not asked", section.first)
    return nats_of(row[1], whole(row[2]), row[3] if len(row) > 3 else "")


def nats_of(endpoint: str, code: int | None, text: str) -> Reading[Nats]:
    """Return a server from its greeting (https://docs.nats.io/reference/reference-protocols)."""
    said = re.sub(r"//[^/@\s]+@", "//", endpoint)
    if not text.startswith("INFO "):
        meeting = met(code, text)
        return Unknown("no INFO line" if meeting == "open" else meeting, text[:120])
    told = document(text)
    if not isinstance(told.get("version"), str):
        return Unknown("the INFO line names no version", text[:120])
    payload = told.get("max_payload")
    nats = Nats(
        said,
        told["version"],
        told.get("jetstream") is True,
        told.get("auth_required") is True,
        told.get("tls_required") is True,
        payload if isinstance(payload, int) else None,
    )
    return Known(nats, f"{said}: nats-server {nats.version}")


def reach_probe(targets: Iterable[str]) -> Probe[Reach]:
    """Return the question what TCP connections from the host to HOST:PORT meet."""
    places = sorted(set(targets))
    calls = "\n".join(_reach_call(target) for target in places)
    return Probe(
        "reach", Reach, f"{_TALK}{calls}\nwait\n", parse_reach, seconds=9, volatile=True
    )  # fmt: skip


def _reach_call(target: str) -> str:
    host, port, _ = place(target, 0)
    return f"(reply reach {quote(target)} {quote(host)} {quote(str(port))} 0 '') &"


def parse_reach(section: Section) -> Reading[Reach]:
    """Return what each try met."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    tries = [row for row in rows(answer.value) if row[0] == "reach" and len(row) > 2]
    found = {r[1]: met(whole(r[2]), r[3] if len(r) > 3 else "") for r in tries}
    if not found:
        return Unknown("no connection was tried", section.first)
    return Known(Reach(found), ", ".join(f"{target} {word}" for target, word in found.items()))
