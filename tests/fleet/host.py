"""One host: its processes, its cable, its power, and what a test looks up in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bringup.core.host import Host, Login

from . import groups
from .sshd import PROGRAM, descendants, greets

if TYPE_CHECKING:
    from .yard import Yard

SCRIPT = Path(__file__).parent / "host.sh"
READY_S = 300

SSHD = f"{PROGRAM} -D -E /var/log/sshd.log -f /etc/ssh/fleet_sshd_config"


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
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-a", "-r", "-w", *words],
            check=False, capture_output=True, timeout=900, input=stdin,
        )  # fmt: skip
        said = (done.stdout + done.stderr)[-2000:].decode(errors="replace")
        assert not (check and done.returncode), f"{words} ended with {done.returncode}:\n{said}"
        return done

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
        lists = [
            tree / self.yard.prefix / self.name / "cgroup.procs" for tree in groups.hierarchies()
        ]
        self.starter = spawn(
            self.folder, self.name, self.space, lists, docker=self.docker, init=self.init
        )
        self._await(lambda: bool(descendants(self.starter.pid)), "its first process")
        self.await_sshd()
        if self.docker:
            self.await_docker()

    def end(self) -> None:
        """End every process of the host."""
        await_end(self.kill())

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


def spawn(
    folder: Path, name: str, space: str, lists: Iterable[Path], *, docker: bool, init: str
) -> subprocess.Popen[bytes]:
    """Start a host's first process: it joins its groups, takes its namespaces and runs host.sh."""
    enter = 'for list; do echo $$ >"$list"; done; exec nsenter --net="$SPACE" unshare -m -u -i -p'
    enter += ' -C -f --kill-child=SIGKILL --propagation private sh "$SCRIPT"'
    values = {"DIR": folder, "NAME": name, "SPACE": f"/run/netns/{space}", "SCRIPT": SCRIPT,
              "DOCKER": "1" if docker else "", "INIT": init, "SSHD": SSHD,
              "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # fmt: skip
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ["sh", "-c", enter, "sh", *map(str, lists)],
            env={key: str(value) for key, value in values.items()},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def await_end(first: Iterable[int]) -> None:
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
