"""Prefill and decode side by side: do the two rendered command lines still fit each other?

The rules of `rules.deployment` look at what people wrote; this looks at what came out, and so also
sees an operator's word that reached one role only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..core.host import Mode
from ..core.rules import Finding, Status
from ..core.words import Secret
from ..rules.deployment import SHARED_ENV, SHARED_FLAGS
from .check import KINDS
from .spec import Spec
from .words import Words, flexible, read

SOURCE = "docs/engines.md#pairs"


@dataclass(frozen=True, slots=True)
class Shared:
    """One thing that all workers of a pair say alike. A secret is compared, and never shown."""

    name: str
    of: Callable[[Spec, Words], str | Secret | None]


def _flag(name: str) -> Shared:
    return Shared(name, lambda _spec, words: words.value(name))


def _variable(name: str) -> Shared:
    return Shared(name, lambda spec, _words: spec.command.env.get(name))


SHARED: tuple[Shared, ...] = (
    Shared("image", lambda spec, _words: f"{spec.image} {spec.image_digest}".strip()),
    Shared("engine", lambda spec, _words: spec.engine),
    *map(_flag, SHARED_FLAGS),
    *map(_variable, SHARED_ENV),
)


def agree(specs: Iterable[Spec]) -> tuple[Finding, ...]:
    """Return a finding for everything that workers of one pair should share and do not."""
    pair = [(s, read(s.command, flexible)) for s in specs if s.mode is not Mode.AGGREGATED]
    return tuple(
        finding for shared in SHARED for finding in _differs(shared, pair) if len(pair) > 1
    )


def _differs(shared: Shared, pair: list[tuple[Spec, Words]]) -> Iterable[Finding]:
    said = {f"{spec.role} on {spec.host}": shared.of(spec, words) for spec, words in pair}
    if len(set(said.values())) < 2:
        return
    text = ", ".join(f"{who}: {value or 'nothing'}" for who, value in sorted(said.items()))
    level, title, reason = KINDS["pair-differs"]
    yield Finding(
        "pair-differs", title, Status.FAIL, level, "", (f"{shared.name}: {text}",), reason,
        "set it for the deployment, not for one role or host", SOURCE,
    )  # fmt: skip
