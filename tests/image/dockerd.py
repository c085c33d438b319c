"""A real docker engine for tests: own data, own socket, no bridge, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bringup.edge.engine import Engine

from .here import Here

DOCKER = "/usr/bin/docker"


@dataclass
class Dockerd:
    """One engine: its socket, its process, its data folder."""

    folder: Path
    here: Here
    process: subprocess.Popen[bytes] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return (DOCKER, "-H", f"unix://{self.folder}/d.sock")

    @property
    def engine(self) -> Engine:
        return Engine(self.here, self.words, self.folder.name)

    def docker(self, *words: str, **more: object) -> str:
        done = subprocess.run(
            [*self.words, *words],
            capture_output=True,
            text=True,
            check=True,
            **more,  # type: ignore[call-overload]
        )
        return str(done.stdout).strip()

    def start(self) -> None:
        """Start the engine and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "dockerd", "--data-root", f"{self.folder}/data",
                    "--exec-root", f"{self.folder}/exec", "--pidfile", f"{self.folder}/pid",
                    "-H", f"unix://{self.folder}/d.sock", "--iptables=false", "--bridge=none",
                ],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and self.process.poll() is None:
            done = subprocess.run([*self.words, "version"], capture_output=True, check=False)
            if done.returncode == 0:
                return
            time.sleep(0.2)
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the engine and all that it started."""
        assert self.process is not None
        self.process.send_signal(how)
        try:
            self.process.wait(timeout=180)
        except subprocess.TimeoutExpired:
            how = signal.SIGKILL
        if how == signal.SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for left in ("pid", "exec/containerd/containerd.pid"):  # the number may be another's
                (self.folder / left).unlink(missing_ok=True)

    def resize(self, megabytes: int) -> None:
        """Give the disk that holds the engine's data another size."""
        options = f"remount,size={megabytes}m"
        subprocess.run(["mount", "-o", options, str(self.folder)], check=True)

    def used(self) -> int:
        """Return the megabytes (MiB) that are used on its disk."""
        return shutil.disk_usage(self.folder).used // 2**20


@contextmanager
def dockerd(
    folder: Path, *, data: Path | None = None, in_memory: bool = False
) -> Iterator[Dockerd]:
    """Run an engine below a folder and remove all of it; `data` is copied to begin with."""
    folder.mkdir(parents=True)
    if in_memory:
        options = ["-t", "tmpfs", "-o", "size=4000m", f"bringup-{folder.name}", str(folder)]
        subprocess.run(["mount", *options], check=True)
    (folder / "root").mkdir()
    if data is not None:
        subprocess.run(["cp", "-a", str(data), f"{folder}/data"], check=True)
    engine = Dockerd(folder, Here(f"{folder}/root"))
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        for mount in _mounts_below(folder):
            subprocess.run(["umount", "-l", mount], check=False)
        if in_memory:
            subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    mounts = [line.split()[1] for line in lines]
    return sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True)
