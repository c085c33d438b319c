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
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import CommandFailed, ToolError
from ..core.reading import Absent, Known, Reading, Unknown
from ..image import mirror
from ..image.facts import ImageFacts
from ..image.mirror import Manifest, parse_manifest
from ..image.route import Cargo, human
from . import http
from .engine import Engine

PROGRAM = "docker-registry"
ACCEPT = ", ".join(mirror.MEDIA_TYPES)
START_S = 60.0

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
    manifest: Manifest

    def fill(self, cargo: Cargo, base: Manifest | None, reference: str) -> Cargo:
        """Return a cargo with its sizes, and how many layers of its base are as in `base`."""
        count = mirror.kept(base, self.manifest)
        digest = reference.partition("@")[2] if count else ""
        sizes = tuple(layer.size for layer in self.layers)
        return replace(
            cargo, sizes=sizes, base_digest=digest, base_layers=count, config=self.manifest.config
        )


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
        except CommandFailed as error:
            raise self.explained(error) from error
        finally:
            engine.untag(reference)

    def explained(self, error: CommandFailed) -> CommandFailed:
        """Say what stopped the registry: the engine only tells that it answered 500."""
        lines = _tail(self.folder.parent / "log")
        if any("no space left" in line for line in lines):
            free = human(shutil.disk_usage(self.folder).free)
            error.message += f"; the registry's disk is full: {free} free in {self.folder}"
            error.remedy = "free space there, or keep state on a larger disk: --state FOLDER"
        return error

    def manifest(self, name: str, reference: str) -> Reading[Manifest]:
        """Return the manifest under a tag or digest; absent where the registry has none."""
        answer = self._ask(f"{name}/manifests/{reference}")
        if answer.status == 404:
            return Absent(f"no {name}:{reference}")
        if answer.status != 200:
            return Unknown(f"HTTP {answer.status}", answer.text[:500])
        try:
            return Known(parse_manifest(answer.body))
        except ValueError as error:
            return Unknown(str(error), answer.text[:500])

    def holds(self, name: str, tag: str, identity: str) -> bool:
        """Return whether an image lies here whole, as an earlier push left it."""
        found = self.manifest(name, tag)
        if not isinstance(found, Known) or identity not in (found.value.config, found.value.digest):
            return False
        digests = (found.value.config, *(layer.digest for layer in found.value.layers))
        return bool(found.value.layers) and all(self._blob(one).is_file() for one in digests)

    def stored(self, name: str, tag: str) -> Stored:
        """Return an image's description and layers; raises ToolError when it is not whole."""
        manifest = self._whole(name, tag)
        if manifest.platforms:  # engines with containerd's store push a list, attestations beside
            manifest = self._whole(name, next(iter(manifest.platforms.values())))
        config = self._blob(manifest.config).read_bytes()
        diffs = json.loads(config)["rootfs"]["diff_ids"]
        if len(diffs) != len(manifest.layers):
            raise ToolError(f"cannot read {name}:{tag} in the registry: its layers do not match")
        layers = (
            Layer(diff, self._blob(layer.digest), layer.size)
            for diff, layer in zip(diffs, manifest.layers, strict=True)
        )
        return Stored(config, tuple(layers), manifest)

    def _whole(self, name: str, reference: str) -> Manifest:
        found = self.manifest(name, reference)
        if isinstance(found, Known):
            return found.value
        why = found.why if isinstance(found, Unknown) else "it is not there"
        raise ToolError(f"cannot read {name}:{reference} in the registry: {why}")

    def _blob(self, digest: str) -> Path:
        plain = digest.removeprefix("sha256:")
        return self.folder / "docker/registry/v2/blobs/sha256" / plain[:2] / plain / "data"

    def _ask(self, path: str) -> http.Answer:
        url = f"http://127.0.0.1:{self.port}/v2/{path}"
        return http.ask(url, headers={"Accept": ACCEPT}, seconds=30)


@contextlib.contextmanager
def running(folder: Path, *, more: str = "") -> Iterator[Registry]:
    """Run the registry over a folder; its port stays the same from run to run where it can.

    `more` is YAML for its settings. A stable port keeps names stable, by which engines know what
    they pushed before.
    """
    settings = folder / "registry.yml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        port = _port(folder)
        base = _SETTINGS.format(folder=json.dumps(str(folder / "data")), port=port)
        settings.write_text(base + more)
    except OSError as error:
        raise ToolError(
            f"cannot keep a registry in {folder}: {error.strerror}",
            remedy="make that folder writable, or keep state elsewhere: --state FOLDER",
        ) from error
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


def _tail(log: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace").splitlines()[-200:]
    return []


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
        said="\n".join(_tail(log)[-5:]),
    )
