"""A real docker engine for tests: own data, own socket, no bridge, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bringup.edge.engine import Engine

from .here import Here

DOCKER = "/usr/bin/docker"


@dataclass
class Dockerd:
    """One engine: its socket, its process, its data folder."""

    folder: Path
    process: subprocess.Popen[bytes]
    here: Here

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


@contextmanager
def dockerd(folder: Path, *options: str) -> Iterator[Dockerd]:
    """Start an engine below a folder, wait until it answers, end it and remove the folder."""
    folder.mkdir(parents=True)
    words = [
        "dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec",
        "--pidfile", f"{folder}/pid", "-H", f"unix://{folder}/d.sock",
        "--iptables=false", "--bridge=none", *options,
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    engine = Dockerd(folder, process, Here(f"{folder}/root"))
    try:
        _wait(engine)
        yield engine
    finally:
        _stop(engine)


def _wait(engine: Dockerd) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if engine.process.poll() is not None:
            break
        done = subprocess.run([*engine.words, "version"], capture_output=True, check=False)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError((engine.folder / "log").read_text()[-2000:])


def _stop(engine: Dockerd) -> None:
    engine.process.send_signal(signal.SIGTERM)
    try:
        engine.process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(engine.process.pid, signal.SIGKILL)
        engine.process.wait()
    for mount in _mounts_below(engine.folder):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(engine.folder, ignore_errors=True)


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    mounts = [line.split()[1] for line in lines]
    return sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True)
