"""Whole hosts on one machine: network, processes, files and users of their own, real OpenSSH.

A yard is a bridge in a network namespace, joined to the test process by one veth pair. A host is
a set of namespaces with an overlay of this machine's / as its root (host.sh). Needs root. Names
carry the number of the process that made them, so what a killed run left is cleared by the next.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bringup.core.host import Host, Login

from . import keys
from .sshd import PROGRAM, descendants, greets

SCRIPT = Path(__file__).parent / "host.sh"
GROUPS = Path("/sys/fs/cgroup")
PLACES = Path("/var/tmp")
READY_S = 300

SSHD = f"{PROGRAM} -D -E /var/log/sshd.log -f /etc/ssh/fleet_sshd_config"
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


@dataclass(eq=False)
class FleetHost:
    """One running host. It has the users root, operator (sudo, no password), guest (with one)."""

    name: str
    address: str
    folder: Path
    key: Path
    space: str
    link: str
    yard: Yard
    starter: subprocess.Popen[bytes]
    docker: bool = False
    init: str = "sh"
    port: int = 22

    @property
    def host_key(self) -> Path:
        return self.folder / "etc/host_key"

    @property
    def pid(self) -> int:
        """The number of its PID 1 as this machine sees it."""
        return descendants(self.starter.pid)[0]

    def host(self, *, root: str = "/", **login: object) -> Host:
        """Return it as a host of an inventory; keywords change its login."""
        base = Login(self.address, user="root", key_file=str(self.key))
        return Host(self.name, replace(base, **login), root=root)  # type: ignore[arg-type]

    def exec(
        self, *words: str, check: bool = True, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command inside as root, past SSH."""
        return subprocess.run(
            ["nsenter", "-t", str(self.pid), "-a", "-r", "-w", *words],
            check=check, capture_output=True, timeout=300, input=stdin,
        )  # fmt: skip

    def text(self, *words: str) -> str:
        """Return what a command inside prints."""
        return self.exec(*words).stdout.decode()

    def tree_digest(self, *folders: str) -> str:
        """Return a digest of names, kinds, modes, owners, times and contents below folders."""
        words = ("--sort=name", "--numeric-owner", "-cf", "-", "-C", "/")
        names = [folder.strip("/") or "." for folder in folders]
        done = self.exec("sh", "-c", 'tar "$@" 2>/dev/null | sha256sum', "sh", *words, *names)
        return done.stdout.decode().split()[0]

    def fill(self, folder: str = "/small") -> None:
        """Leave no byte free in a folder's file system; /small holds 1 MiB."""
        self.exec("dd", "if=/dev/zero", f"of={folder}/.fill", "bs=64k", check=False)

    def kill_sshd(self) -> None:
        """Kill the listener and every session, as a crash would."""
        self.exec("pkill", "-KILL", "-x", "sshd", check=False)
        self._await(lambda: self.exec("pgrep", "-x", "sshd", check=False).returncode == 1, "end")

    def start_sshd(self) -> None:
        """Start the listener again and wait until it answers."""
        self.exec("sh", "-c", f"setsid {SSHD} </dev/null >/dev/null 2>&1 &")
        self.await_sshd()

    def pause(self) -> None:
        """Stop every process of sshd: connections stay, nothing answers."""
        self.exec("pkill", "-STOP", "-x", "sshd", check=False)

    def resume(self) -> None:
        self.exec("pkill", "-CONT", "-x", "sshd", check=False)

    def cut(self) -> None:
        """Pull the cable: packets vanish, both ends hear nothing."""
        self.yard.ip("link", "set", self.link, "down")

    def mend(self) -> None:
        """Put the cable back."""
        self.yard.ip("link", "set", self.link, "up")

    def power_off(self) -> None:
        """Pull the plug: everything in it ends at once, and nothing says goodbye."""
        self.cut()
        self.end()

    def power_on(self) -> None:
        """Switch a host on again after `power_off`: its disk stays, nothing else does."""
        self.mend()
        groups = [tree / self.yard.prefix / self.name / "cgroup.procs" for tree in _hierarchies()]
        self.starter = _spawn(
            self.folder, self.name, self.space, groups, docker=self.docker, init=self.init
        )
        self._await(lambda: bool(descendants(self.starter.pid)), "its first process")
        self.await_sshd()
        if self.docker:
            self.await_docker()

    def end(self) -> None:
        """End every process of the host."""
        _await_end(self.kill())

    def kill(self) -> list[int]:
        """Let its first process be killed, and all with it; return its number, if it ran."""
        if self.starter.poll() is not None:
            return []
        first = descendants(self.starter.pid)[:1]
        self.starter.kill()
        self.starter.wait()
        return first

    def await_sshd(self) -> None:
        self._await(lambda: greets(self.address, self.port), "sshd")

    def await_docker(self) -> None:
        self._await(lambda: self.exec("docker", "info", check=False).returncode == 0, "dockerd")

    def _await(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_S
        while not ready():
            if time.monotonic() > deadline or self.starter.poll() is not None:
                log = (self.folder / "log").read_text(errors="replace")
                raise AssertionError(f"{what} of {self.name} did not start: {log}")
            time.sleep(0.02)


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
            _await_end([pid for host in made for pid in host.kill()])
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
        starter = _spawn(folder, name, space, self._groups(name), docker=docker, init=init)
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
        for tree in _hierarchies():
            group = tree / self.prefix / name
            group.mkdir(parents=True)
            for step in (group.parent, group):
                _inherit_cpuset(step)
            made.append(group / "cgroup.procs")
        return made

    def _remove(self, host: FleetHost) -> None:
        _ip("netns", "del", host.space, check=False)
        _ip("-n", self.space, "link", "del", host.link, check=False)
        _remove_groups(f"{self.prefix}/{host.name}")
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


def _spawn(
    folder: Path, name: str, space: str, groups: Iterable[Path], *, docker: bool, init: str
) -> subprocess.Popen[bytes]:
    """Start a host's first process: it joins its groups, takes its namespaces and runs host.sh."""
    enter = 'for list; do echo $$ >"$list"; done; exec nsenter --net="$SPACE" unshare -m -u -i -p'
    enter += ' -C -f --kill-child=SIGKILL --propagation private sh "$SCRIPT"'
    values = {"DIR": folder, "NAME": name, "SPACE": f"/run/netns/{space}", "SCRIPT": SCRIPT,
              "DOCKER": "1" if docker else "", "INIT": init, "SSHD": SSHD,
              "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # fmt: skip
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ["sh", "-c", enter, "sh", *map(str, groups)],
            env={key: str(value) for key, value in values.items()},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _await_end(first: Iterable[int]) -> None:
    """Wait until first processes of hosts have ended, and all others of theirs with them.

    A process that has ended may be listed some seconds more, until this machine's own first
    process collects it: what it held is free by then.
    """
    deadline = time.monotonic() + 60
    while any(map(_lives, first)) and time.monotonic() < deadline:
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


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


def _hierarchies() -> list[Path]:
    """Return the control group trees: one on a unified system, one a controller otherwise."""
    if (GROUPS / "cgroup.controllers").exists():
        return [GROUPS]
    return [tree for tree in sorted(GROUPS.iterdir()) if (tree / "cgroup.procs").exists()]


def _inherit_cpuset(group: Path) -> None:
    """A v1 cpuset starts empty, and takes no process while it is."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        mine, parents = group / name, group.parent / name
        if mine.exists() and parents.exists() and not mine.read_text().strip():
            mine.write_text(parents.read_text())


def _prefixes(*, alive: bool) -> set[str]:
    """Return the prefixes of yards whose process is alive, or gone."""
    names = [*_ip("netns", "list").split(), *(path.name for path in PLACES.glob("bf*-*"))]
    found = {hit[0]: int(hit[1]) for name in names if (hit := re.match(r"bf(\d+)[i-z]", name))}
    return {prefix for prefix, pid in found.items() if Path(f"/proc/{pid}").exists() is alive}


def _clear(prefix: str) -> None:
    """Remove a yard: its processes, namespaces, links, groups and files."""
    for tree in _hierarchies():
        for processes in (tree / prefix).rglob("cgroup.procs"):
            _kill(processes)
    for name in re.findall(rf"^{prefix}[ch]\d*", _ip("netns", "list"), re.MULTILINE):
        _ip("netns", "del", name, check=False)
    _ip("link", "del", f"{prefix}r", check=False)
    _remove_groups(prefix)
    for folder in PLACES.glob(f"{prefix}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _kill(processes: Path) -> None:
    with suppress(OSError):
        for pid in map(int, processes.read_text().split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _remove_groups(name: str) -> None:
    """Remove control groups, deepest first; a group lives a little longer than its processes."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = [path for tree in _hierarchies() for path in (tree / name).rglob("*")]
        groups = [*sorted((p for p in left if p.is_dir()), key=lambda p: -len(p.parts)),
                  *(tree / name for tree in _hierarchies())]  # fmt: skip
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        if not any((tree / name).exists() for tree in _hierarchies()):
            return
        time.sleep(0.05)
