"""Knobs: every setting that rules and people may turn, declared once, and how opinions settle.

Precedence: default < kind < rule < deployment < role < host < operator. Within one rank two
opinions merge as the knob says; where they must agree and do not, that is an error naming both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from .errors import UsageError
from .host import Scalar
from .nearest import did_you_mean


class Rank(IntEnum):
    """Whose word it is; a higher one overrules."""

    DEFAULT = 0
    KIND = 1
    RULE = 2
    DEPLOYMENT = 3
    ROLE = 4
    HOST = 5
    OPERATOR = 6


Merge = Callable[[Scalar, Scalar], Scalar | None]


def agree(one: Scalar, other: Scalar) -> Scalar | None:
    """Both must say the same; None is a conflict."""
    return one if one == other else None


def largest(one: Scalar, other: Scalar) -> Scalar | None:
    """The larger number wins: for budgets and limits."""
    return max(float(one), float(other)) if isinstance(one, float | int) else agree(one, other)


def smallest(one: Scalar, other: Scalar) -> Scalar | None:
    """The smaller number wins: for shares of memory."""
    return min(float(one), float(other)) if isinstance(one, float | int) else agree(one, other)


@dataclass(frozen=True, slots=True)
class Form:
    """What a text has to match as a whole, and that in words."""

    pattern: str
    said: str


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting. `default` None means: unset, the engine decides. `engines` () means all.

    `low` and `high` bound a number, both ends included; `form` and `choices` bound a text.
    """

    name: str
    type: type
    default: Scalar | None
    help: str
    unit: str = ""
    merge: Merge = agree
    engines: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    form: Form | None = None


_TYPES: Mapping[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
}


def unfit(knob: Knob, value: Scalar) -> str:
    """Return what a value should be, where it is not that: "should be 1 to 65535, not 70000"."""
    want = _wanted(knob, value)
    near = did_you_mean(str(value), knob.choices)
    return f"should be {want}, not {_shown(value)}{near}" if want else ""


def _wanted(knob: Knob, value: Scalar) -> str:
    if not _is_of(value, knob.type):
        return _TYPES[knob.type]
    if knob.choices and value not in knob.choices:
        return " or ".join(knob.choices)
    if knob.form and not re.fullmatch(knob.form.pattern, str(value)):
        return knob.form.said
    return "" if _is_within(knob, value) else _range(knob)


def _is_of(value: Scalar, form: type) -> bool:
    if form is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is form


def _is_within(knob: Knob, value: Scalar) -> bool:
    if isinstance(value, str | bool):
        return True
    return (knob.low is None or value >= knob.low) and (knob.high is None or value <= knob.high)


def _range(knob: Knob) -> str:
    if knob.high is None:
        return f"{knob.low:g} or more"
    return f"at most {knob.high:g}" if knob.low is None else f"{knob.low:g} to {knob.high:g}"


def _shown(value: Scalar) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


@dataclass(frozen=True, slots=True)
class Opinion:
    """Somebody's word on a knob: who says so (for people) and with what rank."""

    knob: str
    value: Scalar
    rank: Rank
    by: str
    because: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A settled knob: its value, the default it replaced, whose word it was, what it overruled."""

    knob: str
    value: Scalar
    default: Scalar | None
    by: str
    because: str = ""
    overruled: tuple[Opinion, ...] = ()


def settle(knobs: Mapping[str, Knob], opinions: Iterable[Opinion]) -> dict[str, Decision]:
    """Return the decision for every knob that has a default or an opinion, by knob name.

    The order of opinions never matters. Raises UsageError for an unknown knob or a conflict.
    """
    by_knob: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        if opinion.knob not in knobs:
            raise UsageError(f"cannot set {opinion.knob!r}: no such knob (said {opinion.by})")
        by_knob.setdefault(opinion.knob, []).append(opinion)
    decisions = (_decided(knob, by_knob.get(name, [])) for name, knob in sorted(knobs.items()))
    return {decision.knob: decision for decision in decisions if decision is not None}


def _decided(knob: Knob, opinions: list[Opinion]) -> Decision | None:
    if not opinions:
        return (
            Decision(knob.name, knob.default, knob.default, "default")
            if knob.default is not None
            else None
        )
    top = max(opinion.rank for opinion in opinions)
    winners = sorted((o for o in opinions if o.rank == top), key=lambda o: o.by)
    value = winners[0].value
    for other in winners[1:]:
        value = _merged(knob, value, winners[0], other)
    said = [o for o in winners if o.value == value] or winners
    lost = tuple(sorted((o for o in opinions if o.value != value), key=lambda o: (o.rank, o.by)))
    return Decision(
        knob.name,
        value,
        knob.default,
        " and ".join(o.by for o in said),
        said[0].because,
        lost,
    )


def _merged(knob: Knob, value: Scalar, first: Opinion, other: Opinion) -> Scalar:
    merged = knob.merge(value, other.value)
    if merged is None:
        sides = f"{first.by} says {value!r}, {other.by} says {other.value!r}"
        raise UsageError(
            f"cannot settle {knob.name}: {sides}",
            remedy=f"set {knob.name} in the inventory to the one you mean",
        )
    settled: Scalar = knob.type(merged)
    return settled
