"""The public verbs, one typed function each. Heavy imports wait until a verb acts."""

from __future__ import annotations

import importlib

from ..core.verb import Verb

MODULES = (
    "provision",
    "undo",
    "probe",
    "serve",
    "ready",
    "accept",
    "bench",
    "image",
    "image_ship",
    "weights",
    "slurm",
    "bundle",
    "explain",
    "engine",
    "inventory",
    "lab",
    "develop",
)
"""Where the verbs are, in the order of the table of contents."""


def collect() -> tuple[Verb, ...]:
    """Return every verb: the `VERBS` of each module."""
    modules = (importlib.import_module(f"{__name__}.{name}") for name in MODULES)
    return tuple(verb for module in modules for verb in module.VERBS)
