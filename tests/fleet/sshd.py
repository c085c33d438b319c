"""One OpenSSH server on a loopback port: real, without namespaces, up in 0.1 s."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bringup.core.host import Host, Login
from tests.needed import require

from . import keys

PROGRAM = "/usr/sbin/sshd"

# The login's own start-up files would cost time and change what tests see.
_OPTIONS = ("UsePAM=no", "UseDNS=no", "StrictModes=no", "PidFile=none", "MaxStartups=100:30:200",
            "MaxSessions=100", "Subsystem=sftp internal-sftp", "SetEnv=SHLVL=1",
            "PermitRootLogin=prohibit-password", "PasswordAuthentication=no")  # fmt: skip


@dataclass
class Sshd:
    """A running server: where it is, its host key, and a key that may log in."""

    folder: Path
    port: int
    host_key: Path
    key: Path
    process: subprocess.Popen[bytes]
    options: tuple[str, ...] = field(default=(), repr=False)
    address: str = "127.0.0.1"

    @property
    def user(self) -> str:
        return getpass.getuser()

    @property
    def known_hosts(self) -> Path:
        """Return a file that knows this server and no other."""
        path = self.folder / "known_hosts"
        path.write_text(f"[{self.address}]:{self.port} {keys.public(self.host_key)}\n")
        return path

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def host(self, name: str = "h1", *, root: str = "/", **login: object) -> Host:
        """Return it as a host of an inventory; keywords change its login."""
        base = Login(self.address, port=self.port, user=self.user, key_file=str(self.key))
        return Host(name, replace(base, **login), root=root)  # type: ignore[arg-type]

    def kill(self) -> None:
        """Kill the listener and every session, as a crash would."""
        for pid in (*descendants(self.process.pid), self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """Stop the listener and every session: connections stay, nothing answers."""
        for pid in (self.process.pid, *descendants(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in (self.process.pid, *descendants(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def descendants(pid: int) -> list[int]:
    """Return all processes below a process, nearest first."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


@contextmanager
def running(folder: Path, *options: str, host_key: Path | None = None) -> Iterator[Sshd]:
    """Start a server with `-o` options below a folder, wait until it answers, and end it."""
    require("sshd", "ssh")
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    host_key = host_key or keys.make_key(folder / "host_key")
    key = keys.make_key(folder / "id")
    allowed = folder / "authorized_keys"
    if not allowed.exists():
        allowed.write_text(keys.public(key) + "\n")
    server = _start(folder, host_key, key, options)
    try:
        yield server
    finally:
        server.kill()


def _start(folder: Path, host_key: Path, key: Path, options: tuple[str, ...]) -> Sshd:
    for _ in range(10):
        port = free_port()
        process = launch(folder, host_key, port, options)
        server = Sshd(folder, port, host_key, key, process, options)
        if answers(server):
            return server
    raise AssertionError(f"sshd did not start: {server.log}")


def launch(
    folder: Path, host_key: Path, port: int, options: tuple[str, ...]
) -> subprocess.Popen[bytes]:
    """Start the server's process; earlier options win, as in sshd_config."""
    words = [PROGRAM, "-D", "-E", str(folder / "log"), "-f", "/dev/null", "-h", str(host_key)]
    for option in (*options, f"ListenAddress=127.0.0.1:{port}",
                   f"AuthorizedKeysFile={folder}/authorized_keys", *_OPTIONS):  # fmt: skip
        words += ["-o", option]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(server: Sshd) -> bool:
    """Wait until a server that was started greets; say whether it did."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.process.poll() is None:
        if greets(server.address, server.port):
            return True
        time.sleep(0.02)
    return False


def greets(address: str, port: int) -> bool:
    """Say whether an SSH server answers there."""
    with suppress(OSError), socket.create_connection((address, port), timeout=5) as line:
        return line.recv(4) == b"SSH-"
    return False
