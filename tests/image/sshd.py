"""A real sshd on loopback, which plays the line to every test host; it can be cut."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bringup.core.host import Host, Login
from bringup.edge.ssh import SshFleet


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Sshd:
    """One server: keys, port, process. Hosts differ by name, root folder and engine."""

    folder: Path
    port: int = field(default_factory=_free_port)
    process: subprocess.Popen[bytes] | None = None
    fingerprint: str = ""

    def start(self) -> None:
        if not (self.folder / "host").exists():
            for name in ("host", "user"):
                _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name))
            (self.folder / "authorized").write_bytes((self.folder / "user.pub").read_bytes())
            said = _run("ssh-keygen", "-lf", str(self.folder / "host.pub"))
            self.fingerprint = said.split()[1]
        Path("/run/sshd").mkdir(exist_ok=True)
        options = (
            f"Port={self.port}", "ListenAddress=127.0.0.1", f"HostKey={self.folder}/host",
            f"AuthorizedKeysFile={self.folder}/authorized", "StrictModes=no", "UsePAM=no",
            "UseDNS=no", "PidFile=none", "MaxStartups=100", "MaxSessions=100",
            "Subsystem=sftp internal-sftp", "PermitRootLogin=yes",
        )  # fmt: skip
        words = [word for option in options for word in ("-o", option)]
        self.process = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *words],
            stderr=(self.folder / "log").open("ab"),
            start_new_session=True,
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def cut(self) -> None:
        """End every open line; new ones may be made."""
        for pid in self._children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End every open line and take no new ones."""
        assert self.process is not None
        lines = self._children()
        self.process.kill()
        self.process.wait()
        for pid in lines:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _children(self) -> list[int]:
        assert self.process is not None
        said = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in said.read_text().split()] if said.exists() else []

    def fleet(self, roots: Mapping[str, Path]) -> SshFleet:
        """Return a fleet of hosts that all are this machine, each below its own root."""
        login = Login(
            "127.0.0.1", self.port, "root",
            key_file=str(self.folder / "user"), host_key=self.fingerprint, connect_s=20,
        )  # fmt: skip
        return SshFleet({name: Host(name, login, root=str(root)) for name, root in roots.items()})


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    folder.mkdir(parents=True, exist_ok=True)
    server = Sshd(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
