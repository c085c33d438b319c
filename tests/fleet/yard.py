"""Whole hosts on one machine: network, processes, files and users of their own, real OpenSSH.

A yard is a bridge in a network namespace, joined to the test process by one veth pair. A host is
a set of namespaces with an overlay of this machine's / as its root (host.py). Needs root. Names
carry the number of the process that made them, so what a killed run left is cleared by the next.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import groups, keys
from .host import FleetHost, await_end, spawn

__all__ = ["FleetHost", "Yard", "open_yard"]

PLACES = Path("/var/tmp")

SSHD_CONFIG = """\
HostKey /etc/ssh/fleet_host_key
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
MaxStartups 100:30:200
MaxSessions 100
PidFile none
Subsystem sftp internal-sftp
"""


class Yard:
    """A network with room for hosts."""

    def __init__(self, folder: Path, prefix: str, network: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.network = network
        self.space = f"{prefix}c"
        self.key = keys.make_key(folder / "id")
        self._count = 0

    def ip(self, *words: str) -> None:
        """Configure the yard's own namespace."""
        _ip("-n", self.space, *words)

    @property
    def known_hosts(self) -> Path:
        """Return a file that knows every host made so far."""
        path = self.folder / "known_hosts"
        path.touch()
        return path

    @contextmanager
    def hosts(
        self, count: int, *, docker: bool = False, init: str = "sh", over: Path | None = None
    ) -> Iterator[list[FleetHost]]:
        """Make hosts h1, h2, … and wait until they answer; `init` may be "systemd".

        They begin with what `kept` kept in the folder `over`.
        """
        made: list[FleetHost] = []
        if init == "systemd":
            _allow_inotify()
        try:
            for _ in range(count):  # one by one: what is made is removed though the next fails
                made += [self._start(docker=docker, init=init, over=over)]
            for host in made:
                host.await_sshd()
                if docker:
                    host.await_docker()
            yield made
        finally:
            await_end([pid for host in made for pid in host.kill()])
            for host in made:
                self._remove(host)

    def lay(self) -> None:
        """Make the bridge, and the link that joins this process to it."""
        _ip("netns", "add", self.space)
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "name", "bridge0", "type", "bridge")
        self.ip("link", "set", "bridge0", "up")
        outer = f"{self.prefix}r"
        _ip("link", "add", outer, "type", "veth", "peer", "name", "out", "netns", self.space)
        self.ip("link", "set", "out", "master", "bridge0", "up")
        _ip("addr", "add", f"{self.network}.254/24", "dev", outer)
        _ip("link", "set", outer, "up")

    def kept(self, host: FleetHost, name: str) -> Path:
        """End a host, and keep what it wrote for others to begin with."""
        host.end()
        return (host.folder / "up").rename(self.folder / name)

    def _start(self, *, docker: bool, init: str, over: Path | None) -> FleetHost:
        self._count += 1
        number, name = self._count, f"h{self._count}"
        folder = self.folder / name
        self._furnish(folder, over)
        space, link, address = f"{self.prefix}h{number}", f"v{number}", f"{self.network}.{number}"
        _ip("netns", "add", space)
        self.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        self.ip("link", "set", link, "master", "bridge0", "up")
        _ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", space, "link", "set", device, "up")
        starter = spawn(folder, name, space, self._groups(name), docker=docker, init=init)
        with self.known_hosts.open("a") as known:
            known.write(f"{address} {keys.public(folder / 'etc/host_key')}\n")
        return FleetHost(
            name, address, folder, self.key, space, link, self, starter, docker=docker, init=init
        )

    def _furnish(self, folder: Path, over: Path | None) -> None:
        for part in ("work", "root", "etc", "data", *(() if over else ("up",))):
            (folder / part).mkdir(parents=True)
        if over:  # with whiteouts and attributes, which `cp` alone keeps
            subprocess.run(["cp", "-a", over, folder / "up"], check=True, timeout=600)
        keys.make_key(folder / "etc/host_key")
        (folder / "etc/authorized_keys").write_text(keys.public(self.key) + "\n")
        (folder / "etc/sshd_config").write_text(SSHD_CONFIG)

    def _groups(self, name: str) -> list[Path]:
        """Make this host's control group in every hierarchy; return their process lists."""
        made = []
        for tree in groups.hierarchies():
            group = tree / self.prefix / name
            group.mkdir(parents=True)
            for step in (group.parent, group):
                groups.inherit_cpuset(step)
            made.append(group / "cgroup.procs")
        return made

    def _remove(self, host: FleetHost) -> None:
        _ip("netns", "del", host.space, check=False)
        _ip("-n", self.space, "link", "del", host.link, check=False)
        groups.remove(f"{self.prefix}/{host.name}")
        shutil.rmtree(host.folder, ignore_errors=True)


_LETTERS = iter("ijklmnopqrstuvwxyz")
"""A process may lay several yards: each folder of tests that imports the fixture has its own."""


@contextmanager
def open_yard() -> Iterator[Yard]:
    """Lay out a yard, and clear what killed runs left behind; clear it all at the end."""
    for stale in _prefixes(alive=False):
        _clear(stale)
    prefix = f"bf{os.getpid()}{next(_LETTERS)}"
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=PLACES))
    try:
        yard = Yard(folder, prefix, _free_network())
        yard.lay()
        yield yard
    finally:
        _clear(prefix)


def _allow_inotify() -> None:
    """Raise the limit of the machine: 128 inotify instances hold some 25 hosts with systemd."""
    limit = Path("/proc/sys/fs/inotify/max_user_instances")
    if int(limit.read_text()) < 4096:
        limit.write_text("4096")


def _ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=300)
    if check and done.returncode:
        raise AssertionError(f"ip {' '.join(words)}: {done.stderr}")
    return done.stdout


def _free_network() -> str:
    """Return the first three numbers of a network in 198.18.0.0/15, kept for tests by RFC 2544."""
    taken = _ip("-o", "-4", "addr")
    for step in range(512):
        number = (os.getpid() + step) % 512
        network = f"198.{18 + number // 256}.{number % 256}"
        if f" {network}." not in taken:
            return network
    raise AssertionError("no free network in 198.18.0.0/15")


def _prefixes(*, alive: bool) -> set[str]:
    """Return the prefixes of yards whose process is alive, or gone."""
    names = [*_ip("netns", "list").split(), *(path.name for path in PLACES.glob("bf*-*"))]
    found = {hit[0]: int(hit[1]) for name in names if (hit := re.match(r"bf(\d+)[i-z]", name))}
    return {prefix for prefix, pid in found.items() if Path(f"/proc/{pid}").exists() is alive}


def _clear(prefix: str) -> None:
    """Remove a yard: its processes, namespaces, links, groups and files."""
    for tree in groups.hierarchies():
        for processes in (tree / prefix).rglob("cgroup.procs"):
            groups.kill(processes)
    for name in re.findall(rf"^{prefix}[ch]\d*", _ip("netns", "list"), re.MULTILINE):
        _ip("netns", "del", name, check=False)
    _ip("link", "del", f"{prefix}r", check=False)
    groups.remove(prefix)
    for folder in PLACES.glob(f"{prefix}-*"):
        shutil.rmtree(folder, ignore_errors=True)
