"""Ports that are taken, addresses of the host, its default route, and names it can resolve."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise

from ..core.facts import Probe
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from ..core.words import quote
from .text import answered, first, rows, told, whole


@dataclass(frozen=True, slots=True)
class Listener:
    """A TCP port that something listens on. `owner` is told only for ports that were asked for."""

    port: int
    address: str
    pid: int | None = None
    command: str = ""
    cgroup: str = ""

    @property
    def owner(self) -> str:
        """Who listens, in words."""
        if self.pid is None:
            return "a process that this login may not see"
        place = f" in {self.cgroup}" if self.cgroup not in ("", "/") else ""
        return f"{self.command or 'process'} ({self.pid}){place}"


@dataclass(frozen=True, slots=True)
class Listeners:
    """All TCP ports that are taken, by number."""

    listeners: tuple[Listener, ...]

    def on(self, port: int) -> tuple[Listener, ...]:
        """Return what listens on a port."""
        return tuple(one for one in self.listeners if one.port == port)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The host's addresses by interface, and where its default route goes."""

    host_name: str
    by_address: Mapping[str, str] = field(default_factory=dict)  # address to interface, or ""
    gateway: str = ""
    interface: str = ""  # of the default route

    @property
    def reachable(self) -> tuple[str, ...]:
        """Addresses that another host may use: no loopback, no link-local one."""
        return tuple(a for a in self.by_address if not _is_local(a))


@dataclass(frozen=True, slots=True)
class Names:
    """What names resolve to on the host; () where a name does not resolve."""

    addresses: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Reach:
    """What a TCP connection from the host meets, by "HOST:PORT".

    "open"; "refused" (reachable, nobody listens); "timeout" (dropped on the way); else the words
    of the system.
    """

    met: Mapping[str, str]


def _is_local(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return True
    return parsed.is_loopback or parsed.is_link_local


# Process 1's view, so that a probe from a container reads the host's network and not its own.
_TABLE = r"""
table() {
  f=$R/proc/1/net/$1; [ -n "$R" ] && [ -r "$f" ] || f=$R/proc/net/$1
  [ -r "$f" ] && sed -n "${2:-}s/^/$1	/p" "$f"
}
"""

_OWNERS = r"""
inodes=" $(for port in __PORTS__; do
  for f in "$R/proc/net/tcp" "$R/proc/net/tcp6"; do
    awk -v p=":$(printf '%04X' "$port")" '$4 == "0A" && $2 ~ p "$" { print $10 }' "$f" 2>/dev/null
  done
done | sort -u | tr '\n' ' ')"
[ "$inodes" = " " ] || ls -l "$R"/proc/[0-9]*/fd 2>/dev/null | awk -v want="$inodes" '
  /^\/.*:$/ { pid = $0; sub(/\/fd:$/, "", pid); sub(/.*\//, "", pid) }
  match($0, /socket:\[[0-9]+\]/) {
    inode = substr($0, RSTART + 8, RLENGTH - 9)
    if (index(want, " " inode " ")) print inode, pid
  }' | sort -u | while read -r inode pid; do
  c=; { read -r c <"$R/proc/$pid/comm"; } 2>/dev/null
  g=$(sed -n 's/^0::\|^[0-9]*:name=systemd://p' "$R/proc/$pid/cgroup" 2>/dev/null | head -n 1)
  printf 'owner\t%s\t%s\t%s\t%s\n' "$inode" "$pid" "$c" "$g"
done
"""


# Only the heading and listening sockets: connections would tell who talks to whom.
_TAKEN = "/^ *sl \\|^ *[0-9]*: [0-9A-F:]* [0-9A-F:]* 0A /"


def listeners_probe(ports: Iterable[int] = ()) -> Probe[Listeners]:
    """Return the question which TCP ports are taken, and by whom those are that we plan to use."""
    planned = " ".join(str(port) for port in sorted(set(ports)))
    owners = _OWNERS.replace("__PORTS__", planned) if planned else ""
    tables = f"table tcp {quote(_TAKEN)} || {{ echo 'no /proc/net/tcp'; exit 4; }}"
    script = f"{_TABLE}{tables}\ntable tcp6 {quote(_TAKEN)}\n{owners}"
    end = "printf 'end\\tof ports\\n'\n"
    return Probe("listeners", Listeners, script + end, parse_listeners, volatile=True)


def parse_listeners(section: Section) -> Reading[Listeners]:
    """Read /proc/net/tcp and tcp6 (https://docs.kernel.org/networking/proc_net_tcp.html)."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    lines = (*found.get("tcp", ()), *found.get("tcp6", ()))
    if first(found, "end") != "of ports" or not any("local_address" in line for line in lines):
        return Unknown("no table of TCP ports", section.first)
    owners = {r[1]: r[2:] for r in rows(answer.value) if r[0] == "owner" and len(r) > 3}
    taken = tuple(sorted(_listening(lines, owners), key=lambda one: (one.port, one.address)))
    ports = sorted({one.port for one in taken})
    return Known(Listeners(taken), "ports taken: " + (" ".join(map(str, ports)) or "none"))


def _listening(lines: Iterable[str], owners: Mapping[str, tuple[str, ...]]) -> Iterator[Listener]:
    for words in (line.split() for line in lines):
        if len(words) < 10 or words[3] != "0A" or ":" not in words[1]:
            continue
        address, _, port = words[1].partition(":")
        if not re.fullmatch(r"[0-9A-F]{4}", port) or not (where := _address(address)):
            continue
        one = Listener(int(port, 16), where)
        pid, command, cgroup = (*owners.get(words[9], ("", "", "")), "", "", "")[:3]
        yield replace(one, pid=whole(pid), command=command, cgroup=cgroup)


def _address(digits: str) -> str:
    """Return an address that the kernel prints as 32-bit words of this machine's byte order."""
    if not re.fullmatch(r"([0-9A-Fa-f]{8}){1}|([0-9A-Fa-f]{8}){4}", digits):
        return ""
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    data = b"".join(words)
    return str(IPv4Address(data) if len(data) == 4 else IPv6Address(data))


ADDRESSES = (
    _TABLE
    + r"""
h=; { read -r h <"$R/proc/sys/kernel/hostname"; } 2>/dev/null
[ -n "$h" ] || { read -r h <"$R/etc/hostname"; } 2>/dev/null
printf 'name\t%s\n' "$h"
table route; table fib_trie; table if_inet6
printf 'end\tof addresses\n'
"""
)


def parse_addresses(section: Section) -> Reading[Addresses]:
    """Read local addresses from fib_trie and if_inet6, and routes, without any tool."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    routes = [line.split() for line in found.get("route", ())]
    if first(found, "end") != "of addresses" or not ("fib_trie" in found or "if_inet6" in found):
        return Unknown("the kernel's tables of addresses cannot be read", section.first)
    by_address = {address: _interface(address, routes) for address in _local(found)}
    by_address |= dict(_inet6(found.get("if_inet6", ())))
    default = next((r for r in routes if len(r) > 7 and r[1] == r[7] == "00000000"), None)
    addresses = Addresses(
        first(found, "name"),
        by_address,
        _address(default[2]) if default else "",
        default[0] if default else "",
    )
    return Known(addresses, ", ".join(addresses.reachable) or "only local addresses")


def _local(found: dict[str, tuple[str, ...]]) -> list[str]:
    """Addresses that fib_trie marks "/32 host LOCAL": the line before names the address."""
    lines = found.get("fib_trie", ())
    pairs = (one for one, two in pairwise(lines) if "/32 host LOCAL" in two)
    named = (re.search(r"([0-9]+(\.[0-9]+){3})$", line) for line in pairs)
    return list(dict.fromkeys(match[1] for match in named if match))


def _inet6(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for words in (line.split() for line in lines):
        if len(words) == 6 and re.fullmatch(r"[0-9a-f]{32}", words[0]):
            yield str(IPv6Address(bytes.fromhex(words[0]))), words[5]


def _interface(address: str, routes: list[list[str]]) -> str:
    """Return the interface of the narrowest route that an address lies on, or ""."""
    value = int(IPv4Address(address)) if re.fullmatch(r"[0-9.]+", address) else 0
    fitting = [
        (mask, words[0])
        for words in routes
        if len(words) > 7 and _address(words[1]) and _address(words[7])
        for mask in (int(IPv4Address(_address(words[7]))),)
        if mask and value & mask == int(IPv4Address(_address(words[1])))
    ]
    return max(fitting, default=(0, ""))[1]


def names_probe(names: Iterable[str]) -> Probe[Names]:
    """Return the question what names resolve to on the host, its own name included."""
    looks = "\n".join(f"look {quote(name)}" for name in sorted(set(names)))
    script = f"""
tool getent >/dev/null || {{ echo "getent: not found"; exit 4; }}
limit=
command -v timeout >/dev/null && limit='timeout -k 1 3'
g=$(tool getent)
look() {{ printf 'name\\t%s\\t%s\\n' "$1" "$($limit "$g" ahosts "$1" | cut -d ' ' -f 1 | sort -u |
  tr '\\n' ' ')"; }}
look "$(cat "$R/proc/sys/kernel/hostname" 2>/dev/null || uname -n)"
{looks}
"""
    return Probe("names", Names, script, parse_names, seconds=12)


def parse_names(section: Section) -> Reading[Names]:
    """Return the addresses of each name."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    listed = [row for row in rows(answer.value) if row[0] == "name"]
    found = {row[1]: tuple(row[2].split()) if len(row) > 2 else () for row in listed}
    if not found:
        return Unknown("no name was looked up", section.first)
    said = ", ".join(f"{name} → {' '.join(all_) or 'nothing'}" for name, all_ in found.items())
    return Known(Names(found), said)


PROBES = (
    listeners_probe(),
    Probe("addresses", Addresses, ADDRESSES, parse_addresses),
)
