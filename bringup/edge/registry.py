"""A registry on the controller's loopback, and the layers that lie in it as files.

Debian's `docker-registry` (https://github.com/distribution/distribution); its storage layout is
read directly, since the layers are on this very disk.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CommandFailed, ToolError
from ..image.facts import ImageFacts
from ..image.route import Cargo
from . import http
from .engine import Engine

PROGRAM = "docker-registry"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
START_S = 30.0

_SETTINGS = """\
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {folder}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer in the registry: its diff ID, and the file with its compressed bytes."""

    diff: str
    file: Path
    size: int


@dataclass(frozen=True, slots=True)
class Stored:
    """An image in the registry: the bytes of its description, and its layers, bottom first."""

    config: bytes
    layers: tuple[Layer, ...]


def available() -> bool:
    """Return whether this machine has the registry's program."""
    return shutil.which(PROGRAM) is not None


@dataclass(frozen=True, slots=True)
class Registry:
    """A running registry on 127.0.0.1. `folder` is its storage."""

    folder: Path
    port: int

    def push(
        self, engine: Engine, image: ImageFacts, name: str, tag: str, *, port: int = 0
    ) -> None:
        """Have an engine push an image; layers that are here stay unsent.

        `port` is where a tunnel brings this registry to an engine of another machine.
        """
        reference = f"localhost:{port or self.port}/{name}:{tag}"
        engine.tag(image.id, reference)
        try:
            engine.do("push", reference, why=f"cannot push {name}:{tag}", seconds=7200)
        finally:
            engine.untag(reference)

    def stored(self, name: str, tag: str) -> Stored:
        """Return an image's description and layers; raises ToolError when it is not whole."""
        manifest = json.loads(self._get(f"{name}/manifests/{tag}", accept=MANIFEST))
        config = self._blob(manifest["config"]["digest"]).read_bytes()
        diffs = json.loads(config)["rootfs"]["diff_ids"]
        layers = manifest["layers"]
        if len(diffs) != len(layers):
            raise ToolError(f"cannot read {name}:{tag} in the registry: its layers do not match")
        return Stored(
            config,
            tuple(
                Layer(diff, self._blob(layer["digest"]), int(layer["size"]))
                for diff, layer in zip(diffs, layers, strict=True)
            ),
        )

    def cargo(self, image: ImageFacts, reference: str, kept: str, stored: Stored) -> Cargo:
        return Cargo(image, reference, kept, tuple(layer.size for layer in stored.layers))

    def _blob(self, digest: str) -> Path:
        plain = digest.removeprefix("sha256:")
        return self.folder / "docker/registry/v2/blobs/sha256" / plain[:2] / plain / "data"

    def _get(self, path: str, *, accept: str) -> bytes:
        url = f"http://127.0.0.1:{self.port}/v2/{path}"
        answer = http.ask(url, headers={"Accept": accept}, seconds=30)
        if answer.status != 200:
            raise ToolError(
                f"cannot read {path} in the registry: HTTP {answer.status}", said=answer.text[:500]
            )
        return answer.body


@contextlib.contextmanager
def running(folder: Path, *, more: str = "") -> Iterator[Registry]:
    """Run the registry over a folder; its port stays the same from run to run where it can.

    `more` is YAML for its settings. A stable port keeps names stable, by which engines know what
    they pushed before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = _port(folder)
    settings = folder / "registry.yml"
    base = _SETTINGS.format(folder=json.dumps(str(folder / "data")), port=port)
    settings.write_text(base + more)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            (PROGRAM, "serve", str(settings)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        _wait(process, port, folder / "log")
        yield Registry(folder / "data", port)
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def _port(folder: Path) -> int:
    """Return the port of the last run when it is free, else a new one; keep it for the next."""
    kept = folder / "port"
    wanted = int(kept.read_text()) if kept.is_file() and kept.read_text().isdecimal() else 0
    for port in (wanted, 0):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            found = int(probe.getsockname()[1])
            kept.write_text(str(found))
            return found
    raise ToolError("cannot find a free port on 127.0.0.1 for the registry")


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.05)
    raise CommandFailed(
        "cannot start the registry on the controller",
        ran=f"{PROGRAM} serve",
        exit_code=process.poll() or -1,
        said="\n".join(log.read_text(errors="replace").splitlines()[-5:]),
    )
