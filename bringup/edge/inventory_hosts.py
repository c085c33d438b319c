"""Hosts out of what was said: addresses, logins with their jumps, and faults among hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.host import Host, Login
from ..core.nearest import did_you_mean
from .forms import is_address, shown
from .inventory_roster import NOTHING, Fault, Merged, Roster
from .names import NAME, expand, expand_addresses
from .yaml_marks import Document


def address_of(host: str, said: Merged, roster: Roster) -> str:
    """Return the address of a host: its own, its share of a folded one, or its name."""
    return _share(host, "address", said, roster) or host


def _share(host: str, setting: str, said: Merged, roster: Roster) -> str:
    """Return what a host gets of a folded address: the one at its own place in the folded name."""
    if (setting,) not in said:
        return ""
    hosts = expand(roster.keys[host])
    addresses = expand_addresses(said[(setting,)].value)
    return addresses[hosts.index(host)] if len(addresses) == len(hosts) else addresses[0]


def address_faults(roster: Roster, said: Mapping[str, Merged]) -> Iterator[Fault]:
    """Yield addresses that two hosts share, and folded ones that do not go with their name."""
    unpaired = dict(_unpaired(roster, said))
    yield from unpaired.items()
    seen: dict[object, str] = {}
    for host, words in said.items():
        path = words[("address",)].path if ("address",) in words else ("hosts", roster.keys[host])
        address = address_of(host, words, roster)
        port, gateway = (words.get((key,), NOTHING).value for key in ("port", "gateway"))
        way = (address, port or 22, gateway)
        if way in seen and path not in unpaired:
            yield path, f"{host} has the address of {seen[way]}: {address}"
        seen.setdefault(way, host)


def _unpaired(roster: Roster, said: Mapping[str, Merged]) -> Iterator[Fault]:
    for key in dict.fromkeys(roster.keys.values()):
        hosts = expand(key)
        for setting in ("address", "advertise"):
            word = said[hosts[0]].get((setting,), NOTHING)
            many = len(expand_addresses(word.value)) if word.value else len(hosts)
            if many != len(hosts):
                yield (
                    word.path,
                    (
                        f"names {many} for the {len(hosts)} hosts of {key}: "
                        f"fold it alike, as in 192.0.2.[1-{len(hosts)}]"
                    ),
                )


_LOGIN_KEYS = (
    "port", "user", "key_file", "certificate_file", "agent", "host_key",
    "connect_s", "keepalive_s", "sudo",
)  # fmt: skip


def login(host: str, said: Mapping[str, Merged], roster: Roster) -> Login:
    """Return how to reach a host, all jumps resolved."""
    return _login(host, said, roster, jumps(host, said, roster))


def _login(
    host: str, said: Mapping[str, Merged], roster: Roster, gateway: tuple[Login, ...]
) -> Login:
    words = said[host]
    given = {key: words[(key,)].value for key in _LOGIN_KEYS if (key,) in words}
    direct = words.get(("gateway",), NOTHING).value == (NO_GATEWAY,)
    return Login(address_of(host, words, roster), gateway=gateway, is_direct=direct, **given)


NO_GATEWAY = "none"

_OUTSIDE = re.compile(
    r"((?P<user>[^\s@]+)@)?(?P<address>[^\s@:\[\]]+|\[[^\s\]]+\])(:(?P<port>\d+))?"
)


def jumps(host: str, said: Mapping[str, Merged], roster: Roster) -> tuple[Login, ...]:
    """Return the jumps to a host, nearest to the controller first.

    A gateway that is a host of the inventory brings its own jumps when it stands first.
    """
    found: list[Login] = []
    for name in _gateways(host, said):
        if name not in said:
            found.append(_outside(name, said[host]))
            continue
        found += jumps(name, said, roster) if not found else ()
        found.append(_login(name, said, roster, ()))
    return tuple(found)


def _gateways(host: str, said: Mapping[str, Merged]) -> tuple[str, ...]:
    """Return what a host's gateway names; the gateway itself is reached directly."""
    names: tuple[str, ...] = said[host].get(("gateway",), NOTHING).value or ()
    return () if names in ((NO_GATEWAY,), (host,)) else names


def _outside(text: str, said: Merged) -> Login:
    """Return a jump from outside the inventory; it is logged in to with the host's own key."""
    parts = _OUTSIDE.fullmatch(text)
    user, address, port = parts.group("user", "address", "port") if parts else ("", text, "")
    shared = ("key_file", "certificate_file", "agent", "connect_s", "keepalive_s")
    given = {key: said[(key,)].value for key in shared if (key,) in said}
    return Login(address.strip("[]"), int(port or 22), user or "", **given)


def gateway_faults(said: Mapping[str, Merged]) -> Iterator[Fault]:
    """Yield gateways that nobody knows, and hosts that are reached through themselves."""
    for host, words in said.items():
        for name in _gateways(host, said):
            if name not in said and (fault := outside_fault(name, tuple(said))):
                yield words[("gateway",)].path, fault
        if circle := _circle(host, said):
            yield words[("gateway",)].path, f"{host} is reached through itself: {circle}"


def outside_fault(text: str, hosts: tuple[str, ...]) -> str:
    """Return what is wrong with a jump that is no host of the inventory, or ""."""
    parts = _OUTSIDE.fullmatch(text)
    if parts is None or not _is_reachable(parts["address"], parts["port"] or "22"):
        return f"should be a host of the inventory or USER@HOST:PORT, not {shown(text)}"
    if NAME.fullmatch(text) and "." not in text:
        return f"no host {text!r}{did_you_mean(text, hosts)} (one from outside: USER@{text}:22)"
    return ""


def _is_reachable(address: str, port: str) -> bool:
    return is_address(address.strip("[]")) and len(port) < 6 and 0 < int(port) < 65536


def _circle(host: str, said: Mapping[str, Merged]) -> str:
    """Return the way from a host back to itself, or ""."""
    if host in _gateways(host, said):
        return f"{host} → {host}"
    way, at = [host], host
    while (ahead := _gateways(at, said)[:1]) and ahead[0] in said:
        way.append(at := ahead[0])
        if at == host:
            return " → ".join(way)
        if at in way[:-1]:
            return ""
    return ""


def build(document: Document, roster: Roster, said: Mapping[str, Merged]) -> dict[str, Host]:
    """Return all hosts by name. Only for a file without faults."""
    return {host: _host(host, document, roster, said) for host in roster.keys}


def _host(host: str, document: Document, roster: Roster, said: Mapping[str, Merged]) -> Host:
    words = said[host]
    given = {key: words[(key,)].value for key in ("kind", "gpu_count") if (key,) in words}
    knobs = {path[1]: word for path, word in words.items() if path[0] == "knobs"}
    return Host(
        host,
        login(host, said, roster),
        root=_folder(words.get(("root",), NOTHING).value or "/"),
        groups=roster.groups_of(host),
        advertise=_share(host, "advertise", words, roster),
        knobs={str(name): word.value for name, word in knobs.items()},
        knob_origins={str(name): document.origin(word.path) for name, word in knobs.items()},
        origin=document.origin(("hosts", roster.keys[host])),
        **given,
    )


def _folder(path: str) -> str:
    return path.rstrip("/") or "/"
