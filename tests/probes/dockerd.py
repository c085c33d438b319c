"""A private Docker daemon with an image of nothing but busybox, for as long as a test runs."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATHS = "/usr/bin:/usr/sbin:/bin:/sbin"


def docker(socket: str, *words: str, data: bytes = b"") -> str:
    """Run the docker client against one daemon."""
    environment = {**os.environ, "PATH": PATHS, "DOCKER_HOST": socket}
    done = subprocess.run(
        ["docker", *words], input=data, capture_output=True, env=environment, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@contextmanager
def daemon(folder: Path) -> Iterator[str]:
    """Start dockerd with everything of its own below a folder; give its DOCKER_HOST."""
    socket = f"unix://{folder}/d.sock"
    words = [
        "dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile",
        f"{folder}/pid", "-H", socket, "--iptables=false", "--bridge=none",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env={"PATH": PATHS})
        try:
            _wait(folder, process)
            docker(socket, "import", "-", "tiny:1", data=_rootfs())
            yield socket
        finally:
            process.terminate()
            process.wait(timeout=300)
            netns = folder / "exec/netns/default"
            subprocess.run(["umount", str(netns)], check=False, capture_output=True)


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 240
    while not (folder / "d.sock").exists() or not _answers(folder):
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        assert time.monotonic() < until, "dockerd did not answer within 240 s"
        time.sleep(0.05)


def _answers(folder: Path) -> bool:
    command = ["docker", "-H", f"unix://{folder}/d.sock", "version"]
    return subprocess.run(command, capture_output=True, check=False, timeout=240).returncode == 0


def _rootfs() -> bytes:
    busybox = shutil.which("busybox")
    assert busybox, "busybox-static is needed"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(busybox, "bin/busybox")
        for name in ("sh", "ls", "df", "sleep", "tail", "head", "true"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return out.getvalue()
