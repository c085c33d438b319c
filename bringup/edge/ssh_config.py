"""Where a host is and how to log in there: the inventory's word, completed by ~/.ssh/config."""

from __future__ import annotations

import getpass
import re
import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import UsageError
from ..core.host import Login
from . import ssh_said
from .output import CAP_BYTES
from .ssh_said import Said, home


@dataclass(frozen=True, slots=True)
class SshOptions:
    """What a run says about all its connections. Times in seconds; None means: as each host says.

    `known_hosts` is the only file of host keys then, read and (with `accept_new`) added to.
    `run_s` bounds everything that the run does on its hosts.
    """

    known_hosts: Path | None = None
    accept_new: bool = False
    use_ssh_config: bool = True
    config_file: Path | None = None
    connect_s: float | None = None
    run_s: float | None = None
    cap_bytes: int = CAP_BYTES
    one_flight: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One hop, all settled: where it is, who we are there, and which keys speak for both sides."""

    label: str
    address: str
    port: int
    user: str
    key_files: tuple[str, ...] = ()
    certificate_files: tuple[str, ...] = ()
    agent: bool = False
    agent_socket: str = ""
    search: bool = False  # nobody named a key: try what ssh tries
    pin: str = ""
    known_as: str = ""
    known_hosts: tuple[str, ...] = ()
    proxy_command: str = ""
    connect_s: float = 10.0
    keepalive_s: float = 15.0

    @property
    def place(self) -> str:
        """Return the name under which known_hosts lists this endpoint."""
        name = (self.known_as or self.address).lower()
        return name if self.port == 22 or self.known_as else f"[{name}]:{self.port}"

    def __str__(self) -> str:
        return f"{self.user}@{self.address} port {self.port}"


Route = tuple[Endpoint, ...]
"""The hops to a host: jumps first, the host itself last."""

MOST_JUMPS = 8

_DEFAULT_KEYS = tuple(
    f"~/.ssh/id_{kind}"
    for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")


class Resolver:
    """Turns logins into routes; asks `ssh -G` once for each name, and only where it can matter."""

    def __init__(self, options: SshOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._cache: dict[tuple[str, str, int], Said] = {}
        self._matters: bool | None = None

    def route(self, login: Login, label: str) -> Route:
        """Return the hops to a host; raises UsageError where the configuration makes no sense."""
        return self._route(login, label, MOST_JUMPS)

    def _route(self, login: Login, label: str, depth: int) -> Route:
        if depth == 0:
            raise UsageError(
                f"cannot reach {label}: more than {MOST_JUMPS} jumps; ProxyJump may go in circles"
            )
        said = self._said(login)
        jumps = login.gateway or _jumps(_first(said, "proxyjump"))
        target = settle(login, said, label, self._options)
        if login.is_direct:
            return (replace(target, proxy_command=""),)
        if not jumps:
            return (target,)
        first = self._route(jumps[0], f"gateway {jumps[0].address}", depth - 1)
        rest = tuple(
            replace(settle(jump, self._said(jump), f"gateway {jump.address}", self._options),
                    proxy_command="")
            for jump in jumps[1:]
        )  # fmt: skip
        return (*first, *rest, replace(target, proxy_command=""))

    def _said(self, login: Login) -> Said:
        if not self._options.use_ssh_config or not self._any_matters():
            return {}
        key = (login.address, login.user, login.port)
        with self._lock:
            found = self._cache.get(key)
        if found is None:
            found = ssh_said.ask(login, self._options.config_file)
            with self._lock:
                self._cache[key] = found
        return found

    def _any_matters(self) -> bool:
        with self._lock:
            if self._matters is None:
                self._matters = ssh_said.any_matters(self._options.config_file)
            return self._matters


def settle(login: Login, said: Said, label: str, options: SshOptions) -> Endpoint:
    """Return the endpoint of a login: its own words first, then ssh_config's, then ssh's defaults.

    Port 22 in a login counts as unsaid.
    """
    user = login.user or _first(said, "user") or getpass.getuser()
    address = _first(said, "hostname") or login.address
    port = login.port if login.port != 22 else int(_first(said, "port") or 22)
    tokens = {"%h": address, "%n": login.address, "%p": str(port), "%r": user,
              "%u": getpass.getuser(), "%d": str(home()), "%%": "%"}  # fmt: skip
    keys, certificates = _keys(login, said)
    agent_socket = _first(said, "identityagent")
    return Endpoint(
        label=label,
        address=address,
        port=port,
        user=user,
        key_files=tuple(expand(name, tokens) for name in keys),
        certificate_files=tuple(expand(name, tokens) for name in certificates),
        agent=login.agent,
        agent_socket=expand(agent_socket, tokens) if agent_socket != "SSH_AUTH_SOCK" else "",
        search=not keys and not login.agent,
        pin=login.host_key,
        known_as=_first(said, "hostkeyalias"),
        known_hosts=_known_hosts(said, options, tokens),
        proxy_command=_proxy_command(said, tokens),
        connect_s=options.connect_s or login.connect_s,
        keepalive_s=login.keepalive_s,
    )


def _keys(login: Login, said: Said) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return key and certificate files: the login's own, else the configured ones."""
    if login.key_file or login.agent or login.certificate_file:
        mine = (login.key_file,), (login.certificate_file,)
        return tuple(filter(None, mine[0])), tuple(filter(None, mine[1]))
    return _identity_files(said), said.get("certificatefile", ())


def _identity_files(said: Said) -> tuple[str, ...]:
    """Return the key files that somebody configured; `ssh -G` lists its defaults otherwise."""
    files = said.get("identityfile", ())
    return () if len(files) > 1 and set(files) <= set(_DEFAULT_KEYS) else files


def _known_hosts(said: Said, options: SshOptions, tokens: Mapping[str, str]) -> tuple[str, ...]:
    if options.known_hosts is not None:
        return (str(options.known_hosts),)
    listed = [
        name
        for key in ("userknownhostsfile", "globalknownhostsfile")
        for value in said.get(key, ())
        for name in shlex.split(value)
    ]
    return tuple(expand(name, tokens) for name in listed or _KNOWN_HOSTS)


def _proxy_command(said: Said, tokens: Mapping[str, str]) -> str:
    command = _first(said, "proxycommand")
    return "" if command in ("", "none") else _replace(command, tokens)


def _first(said: Said, key: str) -> str:
    return next(iter(said.get(key, ())), "")


def _jumps(text: str) -> tuple[Login, ...]:
    """Return the logins of a ProxyJump: ``[user@]host[:port]`` or an ssh:// address, by commas."""
    if text in ("", "none"):
        return ()
    return tuple(_jump(part.strip()) for part in text.split(","))


def _jump(text: str) -> Login:
    user, _, place = text.removeprefix("ssh://").rpartition("@")
    found = re.fullmatch(r"\[?(?P<host>[^\]]+?)\]?(?::(?P<port>\d+))?", place)
    if found is None:
        raise UsageError(f"cannot read the ProxyJump {text!r}: it should be user@host:port")
    return Login(found["host"], port=int(found["port"] or 22), user=user)


def expand(name: str, tokens: Mapping[str, str]) -> str:
    """Return a file name with ~ and the tokens of ssh_config filled in."""
    if name.startswith("~/"):
        name = f"{home()}{name[1:]}"
    return _replace(name, tokens)


def _replace(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub(r"%.", lambda found: tokens.get(found[0], found[0]), text)
