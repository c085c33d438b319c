"""What several verbs do alike: tell what a run has cost, read knobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..core.errors import UsageError

if TYPE_CHECKING:
    from ..core.host import Scalar
    from ..core.knobs import Knob
    from ..report.screen import Screen


def tell_cost(screen: Screen) -> None:
    """Tell what a run has cost each host, to people and to machines."""
    from ..flow.open import spent
    from ..report.stats import stats_document, stats_view

    costs = spent()
    screen.show(stats_view(costs))
    screen.emit(stats_document(costs))


def knob_settings(words: tuple[str, ...], knobs: Mapping[str, Knob]) -> dict[str, Scalar]:
    """Return knobs from KNOB=VALUE words; raises UsageError for an unknown knob or a bad value."""
    return dict(_setting(word, knobs) for word in words)


def _setting(word: str, knobs: Mapping[str, Knob]) -> tuple[str, Scalar]:
    name, equals, text = word.partition("=")
    if not equals:
        raise UsageError(f"cannot read --set {word!r}", remedy="write it as KNOB=VALUE")
    if name not in knobs:
        from ..core.nearest import did_you_mean

        raise UsageError(
            f"cannot set {name!r}: no such knob{did_you_mean(name, knobs)}",
            remedy="bringup explain lists them all",
        )
    from ..core.knobs import unfit

    value = _typed(text, knobs[name].type)
    if trouble := unfit(knobs[name], value):
        raise UsageError(f"cannot set {name}: {trouble}", remedy=f"bringup explain {name}")
    return name, value


def _typed(text: str, kind: type) -> Scalar:
    """Return a word as the type of its knob, or as it is: then the knob says what it should be."""
    words: dict[str, Scalar] = {"true": True, "false": False}
    try:
        value: Scalar = words[text] if kind is bool else kind(text)
    except (KeyError, ValueError):
        return text
    return value
