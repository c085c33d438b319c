"""The image as a step of provisioning: its ID and build context, seen on the host."""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import command
from .context import LABEL

# Absent is an answer, an engine that does not speak is none: only then the exit code is 1.
_OBSERVE = """
out=$({inspect} 2>&1) && {{ printf '%s\\n' "$out"; exit 0; }}
case $out in
*"o such image"* | *"image not known"*) echo absent ;;
*) printf '%s\\n' "$out"; exit 1 ;;
esac
"""


def image_step(
    reference: str,
    *,
    identity: str,
    context: str,
    kept: str,
    engine: tuple[str, ...] = ("docker",),
    why: str = "",
) -> Step:
    """Return the step that wants a name to stand for one image, built from one context.

    The action names an image that is on the host (`kept`), so shipping comes before: see
    `flow_ship.ship`. A host that lacks it fails with the engine's "No such image".
    """
    form = f'{{{{.Id}}}} {{{{index .Config.Labels "{LABEL}"}}}}'
    inspect = command((*engine, "image", "inspect", "--format", form, reference))
    return Step(
        id=f"image:{reference}",
        title=f"image {reference}",
        observe=_OBSERVE.format(inspect=inspect),
        wanted=f"{identity} {context}",
        actions=(Run((*engine, "tag", kept, reference), 60),),
        seconds=30,
        why=why or "prefill and decode must run one and the same image",
    )
