"""Exact pins of Python packages, and what is said about them before anything is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..core.host import Origin
from ..core.version import version

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PIN = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[(?P<extras>[^\]]*)\])?\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)"
)
_REQUIREMENT = re.compile(
    rf"\s*(?P<name>{_NAME})\s*(?:\[(?P<extras>[^\]]*)\])?\s*\(?(?P<wanted>[^;)]*)\)?\s*(?:;(?P<if>.*))?"
)
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def normal(name: str) -> str:
    """Return a package name as indexes compare it (PEP 503): ``AI_Dynamo`` → ``ai-dynamo``."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


@dataclass(frozen=True, slots=True)
class Pin:
    """One package held to one version. `name` is normalised, extras are sorted."""

    name: str
    version: str
    extras: tuple[str, ...] = ()
    origin: Origin = field(default=Origin(), compare=False)

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}=={self.version}"


def parse_pin(text: str, origin: Origin | None = None) -> Pin | None:
    """Return the pin that a word like ``name[extra]==1.2`` is, or None when it is no exact pin."""
    match = _PIN.fullmatch(text.strip())
    if match is None:
        return None
    return Pin(
        normal(match["name"]), match["version"], _extras(match["extras"]), origin or Origin()
    )


def _extras(text: str | None) -> tuple[str, ...]:
    return tuple(sorted(normal(extra) for extra in (text or "").split(",") if extra.strip()))


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a package's ``Requires-Dist``: whom it wants, which versions, for which extra."""

    name: str
    wanted: str
    extra: str = ""
    text: str = ""

    @property
    def exact(self) -> str:
        """The one version that is wanted, or "" when a range is."""
        match = re.fullmatch(r"\s*={2,3}\s*([^,*\s]+)\s*", self.wanted)
        return match[1] if match else ""


def parse_requirement(text: str) -> Requirement | None:
    """Return what a ``Requires-Dist`` line asks for, or None when it names no package."""
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        return None
    extra = _EXTRA.search(match["if"] or "")
    shown = text.partition(";")[0].strip()
    return Requirement(
        normal(match["name"]), match["wanted"].strip(), normal(extra[1]) if extra else "", shown
    )


@dataclass(frozen=True, slots=True)
class Release:
    """What an index says of one pin. `exists` False: it has other versions, in `versions`.

    `nearest` is the release whose metadata stands in where the pinned one does not exist.
    """

    pin: Pin
    exists: bool
    versions: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()
    nearest: str = ""


def nearest(wanted: str, versions: Iterable[str]) -> tuple[str, ...]:
    """Return up to two published versions that may have been meant: the next ones up, else down.

    Development releases are named only where one was asked for.
    """
    target = version(wanted)
    known = [(key, text) for text in versions if (key := version(text)) is not None]
    if target is None or "dev" not in wanted:
        known = [(key, text) for key, text in known if "dev" not in text]
    known.sort()
    if target is None:
        return tuple(text for _, text in known[-2:])
    above = tuple(text for key, text in known if key >= target)
    return above[:2] or tuple(text for _, text in known[-2:])


@dataclass(frozen=True, slots=True)
class Displaced:
    """A package of the base that a pin would replace."""

    pin: Pin
    requirement: Requirement
    has: str

    def __str__(self) -> str:
        wanted = self.requirement
        if wanted.name == self.pin.name:
            how = "the pin itself"
        elif wanted.extra:
            how = f"its extra [{wanted.extra}] pins {wanted.text}, which"
        else:
            how = f"it needs {wanted.text}, which"
        return f"{how} replaces {wanted.name} {self.has or '(its version not stated)'}"


def displaced(release: Release, held: Mapping[str, str]) -> tuple[Displaced, ...]:
    """Return what a pin's exact requirements would replace of the packages that must stay.

    Ranges are left to pip's resolver, which gets `held` as constraints.
    """
    pin = release.pin
    itself = Requirement(pin.name, f"=={pin.version}", text=f"{pin.name}=={pin.version}")
    asked = [r for r in release.requires if not r.extra or r.extra in pin.extras]
    wanted = [itself, *asked]
    return tuple(
        Displaced(pin, r, held[r.name])
        for r in wanted
        if r.exact and r.name in held and version(r.exact) != version(held[r.name])
    )


@dataclass(frozen=True, slots=True)
class Resolution:
    """What pip would install for the pins that come with their dependencies: name to version."""

    installs: Mapping[str, str]
