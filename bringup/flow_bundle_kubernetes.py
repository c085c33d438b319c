"""Give a bundle to a frontend in Kubernetes: write the patch, and apply it only when asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from .bundle.kubernetes import FrontendDeployment, Patch, Volume, make_patch, shown_commands
from .core.errors import UsageError
from .core.event import Event, Listen, ignore
from .edge import kubectl
from .edge.bundle_files import Opened


@dataclass(frozen=True, slots=True)
class Written:
    """A patch in files of its own, and the commands that apply them."""

    patch: Patch
    patch_file: Path
    objects_file: Path | None
    commands: str


def write_patch(
    bundle: Opened, deployment: FrontendDeployment, volume: Volume, *, model_path: str, folder: Path
) -> Written:
    """Write the patch (and the ConfigMaps of an init container) into a folder. Applies nothing."""
    patch = make_patch(
        deployment,
        volume,
        model_path=model_path,
        digest=bundle.manifest.digest,
        archive=bundle.path.read_bytes(),
        archive_sha256=bundle.sha256,
    )
    patch_file = folder / f"{deployment.name}-bundle-patch.yml"
    objects_file = folder / f"{deployment.name}-bundle-parts.yml" if patch.objects else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        patch_file.write_text(yaml.safe_dump(patch.patch, sort_keys=False))
        if objects_file is not None:
            objects_file.write_text(yaml.safe_dump_all(patch.objects, sort_keys=False))
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror}") from error
    commands = shown_commands(patch, str(objects_file or ""), str(patch_file))
    return Written(patch, patch_file, objects_file, commands)


def apply_patch(written: Written, *, listen: Listen = ignore) -> None:
    """Apply a written patch with the operator's own kubectl, and wait until new pods run."""
    files = (str(written.objects_file or ""), str(written.patch_file))
    for words in written.patch.commands(*files):
        listen(Event(written.patch.deployment.name, "kubectl", " ".join(words)))
        kubectl.run(words)
