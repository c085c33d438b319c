"""Copies between registries that keep every byte, by skopeo (https://github.com/containers/skopeo)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

from ..core.errors import CommandFailed
from ..core.reading import Absent, Known, Reading, Unknown
from ..image.mirror import Manifest, parse_manifest
from .local import run_here

PROGRAM = "skopeo"
LOOK_S = 60

_LOOPBACK = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?/")


def available() -> bool:
    """Return whether this machine has skopeo."""
    return shutil.which(PROGRAM) is not None


def manifest(reference: str, *, seconds: int = LOOK_S) -> Reading[Manifest]:
    """Return what a registry holds under a reference; logins are those of docker's settings.

    Absent: there is no skopeo, or the registry surely has no such image.
    """
    if not available():
        return Absent(f"no {PROGRAM} on the controller (apt-get install {PROGRAM})")
    words = [PROGRAM, "inspect", "--raw", _tls("", reference), f"docker://{reference}"]
    try:
        done = subprocess.run(words, capture_output=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Unknown(f"its registry did not answer skopeo within {seconds} s")
    said = _last(done.stderr)
    if done.returncode != 0 and re.search("manifest unknown|name unknown|not found", said):
        return Absent(f"its registry has no {reference}: {said}")
    if done.returncode != 0:
        return Unknown(f"skopeo cannot ask its registry: {said}")
    try:
        return Known(parse_manifest(done.stdout))
    except ValueError as error:
        return Unknown(f"what its registry says does not read: {error}")


def copy(source: str, target: str, *, on_line: Callable[[str], None], seconds: int = 7200) -> None:
    """Copy an image from registry to registry, digests as they are; raises CommandFailed."""
    words = (
        PROGRAM, "copy", "--preserve-digests", _tls("src-", source), _tls("dest-", target),
        f"docker://{source}", f"docker://{target}",
    )  # fmt: skip
    done = run_here(words, seconds=seconds, on_line=on_line)
    if done.exit != 0:
        late = f"it did not end within {seconds} s"
        why = late if done.exit == 124 else f"exit {done.exit}"
        raise CommandFailed(
            f"cannot copy {source} by {PROGRAM}: {why}",
            ran=" ".join(words), exit_code=done.exit, said=done.tail(),
        )  # fmt: skip


def _tls(side: str, reference: str) -> str:
    """A registry on loopback needs no TLS, as for docker itself."""
    return f"--{side}tls-verify={'false' if _LOOPBACK.match(reference) else 'true'}"


def _last(text: bytes) -> str:
    """Return what an error line of skopeo's log says."""
    lines = text.decode(errors="replace").strip().splitlines() or [""]
    found = re.search(r'msg="((?:[^"\\]|\\.)*)"', lines[-1])
    return (found[1].replace('\\"', '"') if found else lines[-1])[-300:]
