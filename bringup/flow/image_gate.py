"""The gate inside a built image: asked through a container, judged here."""

from __future__ import annotations

import hashlib

from ..core.errors import VerifyFailed
from ..core.event import Event, Listen, ignore
from ..core.steps import Run
from ..edge.ask_inside import ask_gate
from ..edge.engine import Engine
from ..edge.image_file import ImageFolder
from ..image.gate import GateReport
from ..image.recipe import PatchKind


class GateFailed(VerifyFailed):
    """A built image that its gate does not accept; `report` has every answer."""

    def __init__(self, report: GateReport, message: str, **words: str) -> None:
        super().__init__(message, **words)
        self.report = report


def gate(
    image: ImageFolder,
    engine: Engine,
    reference: str,
    *,
    flags: tuple[str, ...] = (),
    listen: Listen = ignore,
) -> GateReport:
    """Ask a built image every question of its gate; raises GateFailed when one fails."""
    listen(Event(engine.name, "gate", f"{len(image.recipe.gate)} checks"))
    report = ask_gate(
        engine,
        reference,
        image.recipe,
        patched=_overlay_sums(image),
        flags=flags,
        gpus=has_gpus(engine),
    )
    for answer in report.answers:
        text = f"{answer.check}: {answer.status.value}: {answer.says}"
        listen(Event(engine.name, "gate", text))
    if report.failed:
        raise GateFailed(
            report,
            f"cannot accept {image.recipe.reference}: {len(report.failed)} checks of its gate fail",
            host=engine.name,
            step=f"image {image.recipe.name}",
            said="\n".join(f"{a.check}: {a.says}" for a in report.failed),
            remedy="the name still stands for the old image; repair the patch or pin, build again",
        )
    return report


def _overlay_sums(image: ImageFolder) -> dict[str, str]:
    return {
        f"{patch.onto}/{name}": hashlib.sha256(image.patches[f"{patch.source}/{name}"]).hexdigest()
        for patch in image.recipe.patches
        if patch.kind is PatchKind.OVERLAY
        for name in patch.replaces
    }


def has_gpus(engine: Engine) -> bool:
    """Return whether the engine's machine has NVIDIA GPUs that a container may be given."""
    return engine.remote.run(Run(("test", "-c", "/dev/nvidia0"), answers=(0, 1))).exit == 0
