"""Options that the verbs over images share."""

from __future__ import annotations

from typing import Annotated

from ..core.verb import Help

Images = Annotated[str, Help("folder of the image folders")]
Name = Annotated[str, Help("image: a folder's name")]
EngineWords = Annotated[
    str, Help("engine of this machine: docker, podman or a whole command", env="BRINGUP_ENGINE")
]
On = Annotated[str, Help("host whose engine builds (default: this machine's)")]
Wheels = Annotated[str, Help("take packages from this folder of wheels alone")]
IndexUrl = Annotated[str, Help("package index to ask (default: pip's own setting)")]
Check = Annotated[bool, Help("show what would change; write nothing")]
