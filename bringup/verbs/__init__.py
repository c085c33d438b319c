"""The public verbs, one typed function each. Heavy imports wait until a verb acts."""

from __future__ import annotations

from ..core.verb import Verb


def collect() -> tuple[Verb, ...]:
    """Return every verb in the order of the table of contents."""
    from . import bundle, develop, engine, explain, image, inventory, lab, provision, ready

    return (
        *provision.VERBS,
        *ready.VERBS,
        *bundle.VERBS,
        *explain.VERBS,
        *engine.VERBS,
        *inventory.VERBS,
        *image.VERBS,
        *lab.VERBS,
        *develop.VERBS,
    )
