"""Bare scalars of YAML: what they stand for, and where readers would disagree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


def resolve(raw: str) -> tuple[object, str]:
    """Return the value of a bare scalar, and what is wrong when readers would disagree on it.

    Source of the forms: https://yaml.org/type/ (YAML 1.1) against YAML 1.2's core schema.
    """
    if raw in _WORDS:
        return _WORDS[raw], ""
    for form, convert in _FORMS:
        if form.fullmatch(raw):
            return convert(raw), ""
    for form, message in _SURPRISES:
        if form.fullmatch(raw):
            return raw, message.format(raw=raw)
    return raw, ""


_WORDS: Mapping[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], object]], ...] = (
    (re.compile(r"[-+]?(0|[1-9][0-9]{0,17})"), int),
    (re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})"), float),
    (re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{0,18}[eE][-+]?[0-9]{1,2}"), float),
)

_SURPRISES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"y|n|yes|no|on|off", re.IGNORECASE),
        "{raw} is a word to some readers and a switch to others: "
        "write true or false, or quote it ('{raw}')",
    ),
    (
        re.compile(r"[-+]?0[0-9_]+"),
        "{raw} is octal to some readers: write the number without leading zeros, "
        "or quote it ('{raw}')",
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"),
        "{raw} counts in sixties to some readers: quote it ('{raw}')",
    ),
    (
        re.compile(
            r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0o[0-7_]+|[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?"
            r"|[0-9.]+[eE][-+]?[0-9]+|[0-9]{19,}|[0-9]*\.[0-9]{19,}|[0-9]{19,}\.[0-9]*"
            r"|\.(inf|Inf|INF))|\.(nan|NaN|NAN)"
        ),
        "{raw} is a number to some readers and text to others: "
        "write it in plain digits, or quote it ('{raw}')",
    ),
)
