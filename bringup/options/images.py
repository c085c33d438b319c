"""Where images lie, which engine builds them, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help

Images = Annotated[str, Help("folder of the image folders")]
Name = Annotated[str, Help("image: a folder's name")]
EngineWords = Annotated[
    str, Help("engine of this machine: docker, podman or a whole command", env="BRINGUP_ENGINE")
]
On = Annotated[str, Help("host whose engine builds (default: this machine's)")]
Check = Annotated[bool, Help("show what would change; write nothing")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePlace:
    """Where images lie and which engine builds; `on` is the host that does, "" this machine."""

    images: Images = "images"
    engine: EngineWords = "docker"
    on: On = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """Where a build's packages come from."""

    wheels: Annotated[str, Help("take packages from this folder of wheels alone")] = ""
    index: Annotated[str, Help("package index to ask (default: pip's own setting)")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """How an image is built."""

    builder: Annotated[str, Help("buildkit, classic, podman or buildah (default: the best)")] = ""
    fetch_wheels: Annotated[bool, Help("download wheels here: the build needs no network")] = False
    packages: Packages = Packages()
    network: Annotated[str, Help("network of the build, as host or none")] = ""
    force: Annotated[bool, Help("build although nothing changed")] = False
