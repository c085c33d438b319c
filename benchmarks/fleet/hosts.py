"""SSH hosts to measure against: one real sshd each, behind a line of a given round trip."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SSHD = "/usr/sbin/sshd"
PORT = 2222
CONTROLLER = "10.77.0.1"
MTU = 1500
START_S = 60.0
OWN = 'mount -t tmpfs none /run/lock && mount -t tmpfs -o mode=700 none "$0" && exec "$@"'
"""Hosts share this machine's disk, and must not share its locks, nor the operator's home.

What his .bashrc starts would count for every command: sshd's bash reads it.
"""

OPTIONS = ("UsePAM=no", "UseDNS=no", "StrictModes=no", "PidFile=none", "MaxStartups=1000",
           "MaxSessions=100", "PasswordAuthentication=no", "PrintMotd=no", "LogLevel=ERROR",
           "PermitRootLogin=prohibit-password", "Subsystem=sftp internal-sftp")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fleet:
    """Running hosts. `prefix` goes before a command that is to reach them."""

    folder: Path
    hosts: tuple[tuple[str, str], ...]  # name, address
    prefix: tuple[str, ...]
    namespace: str
    device: str

    @property
    def key(self) -> Path:
        return self.folder / "id"

    @property
    def user(self) -> str:
        return getpass.getuser()

    def place(self, host: str) -> Path:
        """Return where a host's files go; all hosts share this machine's disk."""
        return self.folder / "hosts" / host

    def wire_bytes(self) -> int:
        """Return the bytes that have crossed the line, both ways, packet headers included."""
        statistics = Path(f"/sys/class/net/{self.device}/statistics")
        words = ("cat", str(statistics / "rx_bytes"), str(statistics / "tx_bytes"))
        done = _run("ip", "netns", "exec", self.namespace, *words)
        return sum(map(int, done.split()))


@contextmanager
def fleet(folder: Path, count: int, rtt_ms: float, *, in_memory: bool = True) -> Iterator[Fleet]:
    """Run hosts h001, h002, … in a network namespace; needs root. Everything ends with the body.

    Their files lie in memory unless told otherwise: one disk for all would be what is measured.
    """
    if folder.resolve().is_relative_to(Path.home().resolve()):
        raise SystemExit(f"cannot measure in {folder}: name a --work outside of your home")
    folder.mkdir(parents=True, exist_ok=True)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    hosts = tuple((f"h{n:03}", f"10.77.1.{n}") for n in range(1, count + 1))
    ours, theirs = f"bench{os.getpid()}c", f"bench{os.getpid()}h"
    with ExitStack() as stack:
        for space in (ours, theirs):
            _run("ip", "netns", "add", space)
            stack.callback(_run, "ip", "netns", "del", space)
        if in_memory:
            stack.enter_context(_memory(folder / "hosts"))
        device = stack.enter_context(_line(ours, theirs, rtt_ms))
        _addresses(ours, theirs, device, hosts)
        _keys(folder, hosts)
        for name, address in hosts:
            stack.enter_context(_sshd(folder, theirs, name, address))
        prefix = ("ip", "netns", "exec", ours)
        running = Fleet(folder, hosts, prefix, theirs, device)
        _await_all(running)
        yield running


@contextmanager
def _memory(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "none", str(folder))
    try:
        yield
    finally:
        _run("umount", "-l", str(folder))


@contextmanager
def _line(ours: str, theirs: str, rtt_ms: float) -> Iterator[str]:
    """Join the namespaces: by a veth pair, or by the delay line."""
    if not rtt_ms:
        peer = ("peer", "name", "line0", "netns", theirs)
        _run("ip", "link", "add", "line0", "netns", ours, "type", "veth", *peer)
        yield "line0"
        return
    program = Path(__file__).with_name("delay_line.py")
    words = [sys.executable, str(program), ours, theirs, str(int(rtt_ms * 500))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("cannot start the delay line")
        yield "line0"
    finally:
        process.kill()
        process.wait()


def _addresses(ours: str, theirs: str, device: str, hosts: tuple[tuple[str, str], ...]) -> None:
    for space in (ours, theirs):
        _run("ip", "-n", space, "link", "set", "lo", "up")
        _run("ip", "-n", space, "link", "set", device, "mtu", str(MTU), "txqueuelen", "20000", "up")
    _run("ip", "-n", ours, "addr", "add", f"{CONTROLLER}/32", "dev", device)
    _run("ip", "-n", ours, "route", "add", "10.77.1.0/24", "dev", device)
    _run("ip", "-n", theirs, "route", "add", f"{CONTROLLER}/32", "dev", device)
    for _, address in hosts:
        _run("ip", "-n", theirs, "addr", "add", f"{address}/32", "dev", device)


def _keys(folder: Path, hosts: tuple[tuple[str, str], ...]) -> None:
    """Make the keys that are missing, known_hosts, and an ssh_config for who reads one."""
    _key(folder / "id")
    known = []
    for name, address in hosts:
        _key(folder / "keys" / name)
        public = (folder / "keys" / f"{name}.pub").read_text().split()
        known.append(f"[{address}]:{PORT} {public[0]} {public[1]}\n")
    (folder / "known_hosts").write_text("".join(known))
    (folder / "ssh_config").write_text(
        f"Host *\n  User {getpass.getuser()}\n  Port {PORT}\n  IdentityFile {folder}/id\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n"
        "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
    )


def _key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path))


@contextmanager
def _sshd(folder: Path, space: str, name: str, address: str) -> Iterator[None]:
    words = [
        "ip",
        "netns",
        "exec",
        space,
        "unshare",
        "-m",
        "sh",
        "-c",
        OWN,
        str(Path.home()),
        SSHD,
        "-D",
        "-f",
        "/dev/null",
        "-E",
        f"{folder}/log",
    ]
    words += ["-h", str(folder / "keys" / name), "-o", f"ListenAddress={address}:{PORT}"]
    for option in (*OPTIONS, f"AuthorizedKeysFile={folder}/id.pub"):
        words += ["-o", option]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


# Prints the hosts that say no SSH version in time.
_AWAIT = """
import socket, sys, time
until = time.monotonic() + float(sys.argv[1])
for address in sys.argv[3:]:
    while True:
        try:
            with socket.create_connection((address, int(sys.argv[2])), 5) as line:
                if line.recv(4) == b"SSH-":
                    break
        except OSError:
            pass
        if time.monotonic() > until:
            sys.exit(f"{address} does not answer")
        time.sleep(0.05)
"""


def _await_all(running: Fleet) -> None:
    """Wait until every host answers and the last one logs a client in."""
    addresses = [address for _, address in running.hosts]
    words = [*running.prefix, sys.executable, "-c", _AWAIT, str(START_S), str(PORT), *addresses]
    subprocess.run(words, check=True)
    _run(*running.prefix, "ssh", "-F", str(running.folder / "ssh_config"), addresses[-1], "true")


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
