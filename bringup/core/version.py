"""Version numbers that compare as Python packages mean them: 1.3.0 < 1.3.0.post1 < 1.3.1.

Also reads drivers ("580.95.05") and toolkits ("12.9"). Follows PEP 440 for what engines publish.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[._-]?(?P<phase>a|b|rc|alpha|beta|c|pre)[._-]?(?P<pre>\d*))?"
    r"(?:[._-]?post[._-]?(?P<post>\d*))?"
    r"(?:[._-]?dev[._-]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9._-]+))?",
    re.IGNORECASE,
)
_PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "pre": 2, "rc": 2}
_FINAL = (3, 0)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version as a key that sorts. A local part ("+cu130") does not order versions."""

    release: tuple[int, ...]
    phase: tuple[int, int] = _FINAL
    post: int = -1
    not_dev: tuple[bool, int] = (True, 0)


def version(text: str) -> Version | None:
    """Return the version that a text names, or None when it names none ("", "latest", "main")."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    release = tuple(int(part) for part in match["release"].split("."))
    dev = match["dev"]
    phase = (_PHASES[match["phase"].lower()], int(match["pre"] or 0)) if match["phase"] else _FINAL
    if dev is not None and match["phase"] is None and match["post"] is None:
        phase = (-1, 0)  # 0.5.18.dev3 comes before 0.5.18rc1
    return Version(
        _without_trailing_zeros(release),
        phase,
        -1 if match["post"] is None else int(match["post"] or 0),
        (dev is None, int(dev or 0)),
    )


def _without_trailing_zeros(release: tuple[int, ...]) -> tuple[int, ...]:
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    return release


def at_least(text: str, floor: str) -> bool | None:
    """Return whether a version reaches a floor; None when either text names no version."""
    have, want = version(text), version(floor)
    return None if have is None or want is None else have >= want


def within(text: str, since: str = "", until: str = "") -> bool | None:
    """Return whether a version lies in [since, until); "" is open. None: it names no version."""
    have = version(text)
    if have is None:
        return None
    low, high = version(since), version(until)
    return (low is None or have >= low) and (high is None or have < high)
