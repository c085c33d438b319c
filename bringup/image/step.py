"""The image as a step of provisioning: its ID and build context, seen on the host."""

from __future__ import annotations

from ..core.steps import Step
from ..core.words import command, quote
from .context import LABEL
from .record import kept_name

# Absent is an answer, an engine that does not speak is none: only then the exit code is 1. An ID
# differs between classic stores and containerd's. Where it does, the name that an image gets only
# when it was carried and compared says whose it is.
_OBSERVE = """
out=$({inspect} 2>&1) || case $out in
*"o such image"* | *"image not known"*) echo absent; exit 0 ;;
*) printf '%s\\n' "$out"; exit 1 ;;
esac
own=${{out%% *}}
[ "$own" = {identity} ] || [ "$({kept} 2>/dev/null)" != "$own" ] || own={identity}
printf '%s %s\\n' "$own" "${{out#* }}"
"""


def image_step(
    reference: str, *, identity: str, context: str, engine: tuple[str, ...] = ("docker",)
) -> Step:
    """Return the step that wants a name to stand for one image, built from one context.

    It has no action of its own: who plans it says how the image comes (see `core.steps.Carry`).
    """
    form = f'{{{{.Id}}}} {{{{index .Config.Labels "{LABEL}"}}}}'
    name, _, tag = reference.rpartition(":")
    inspect = command((*engine, "image", "inspect", "--format", form, reference))
    own = (*engine, "image", "inspect", "--format", "{{.Id}}", kept_name(name, tag, identity))
    return Step(
        id=f"image:{reference}",
        title=f"ship image {reference}",
        observe=_OBSERVE.format(inspect=inspect, kept=command(own), identity=quote(identity)),
        wanted=f"{identity} {context}",
        actions=(),
        seconds=30,
        why="prefill and decode must run one and the same image",
    )
