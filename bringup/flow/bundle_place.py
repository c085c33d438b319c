"""The tokenizer bundle as part of a plan: placed where the deployment says that frontends look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..bundle.step import refusal
from ..core.errors import UsageError
from ..core.host import Deployment, Host, Inventory
from ..core.rules import Finding, Level, Status
from ..core.steps import Observation, Step
from ..edge.bundle_files import Opened, open_archive
from .bundle_push import step_of

SOURCE = "docs/bundle.md#where-it-goes"


def bundle_steps(
    inventory: Inventory, host: Host, deployment: Deployment | None
) -> tuple[Step, ...]:
    """Return the steps that place bundles on a host: its deployment's.

    A host without a role, such as one that mounts a shared folder, gets those of every deployment
    that names it. Raises UsageError for a bundle that cannot be read.
    """
    chosen = [deployment] if deployment else inventory.deployments.values()
    return tuple(step for one in chosen for step in _steps(inventory, host, one))


def _steps(inventory: Inventory, host: Host, deployment: Deployment) -> Iterator[Step]:
    placed = deployment.bundle.to if deployment.bundle else ()
    folders = [folder for name, folder in placed if name == host.name]
    if not folders:
        return
    bundle = _open(inventory, deployment)
    why = f"frontends of {deployment.name} read these files when they start"
    yield from (step_of(bundle, folder, why=why) for folder in folders)


def _open(inventory: Inventory, deployment: Deployment) -> Opened:
    path = Path(inventory.folder, deployment.bundle.file if deployment.bundle else "")
    worker = next((role.hosts[0] for role in deployment.roles if role.hosts), "HOST")
    if not path.exists():
        raise UsageError(
            f"cannot place the bundle of {deployment.name}: there is no {path}",
            remedy=f"bringup bundle.make {worker}:{deployment.model.path} --out {path}",
        )
    return open_archive(path)


def refusals(
    host: Host, steps: Iterable[Step], seen: Mapping[str, Observation]
) -> Iterator[Finding]:
    """Yield a blocking finding for each folder whose files a bundle may not replace."""
    for step in steps:
        kind, _, folder = step.id.partition(":")
        found = seen[step.id].found if kind == "bundle" and step.id in seen else ""
        if why := refusal(found or "", replace=False):
            yield Finding(
                "bundle-in-the-way", "A bundle replaces only what a bundle put there", Status.FAIL,
                Level.BLOCK, host.name, (f"{folder} {why}",),
                "the folder is swapped whole, and what stands there would be lost",
                "name another folder under bundle: to:, or move these files away", SOURCE,
            )  # fmt: skip
