"""Give a bundle to a frontend in Kubernetes: write the patch, and apply it only when asked."""

from __future__ import annotations

from pathlib import Path

import yaml

from ..bundle.kubernetes import FrontendDeployment, Volume, make_patch, shown_commands
from ..bundle.reports import Written
from ..core.errors import UsageError
from ..core.event import Event, Listen, ignore
from ..edge import kubectl
from ..edge.bundle_files import Opened


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
    files = (str(objects_file or ""), str(patch_file))
    return Written(patch, files[1], files[0], shown_commands(patch, *files))


def apply_patch(written: Written, *, listen: Listen = ignore) -> None:
    """Apply a written patch with the operator's own kubectl, and wait until new pods run."""
    for words in written.patch.commands(written.objects_file, written.patch_file):
        listen(Event(written.patch.deployment.name, "kubectl", " ".join(words)))
        kubectl.run(words)
