"""Facts about one host: readings by type, made by probes from the sections of one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from .reading import Absent, Known, Reading, Unknown
from .script import Answer, Ask, Section

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Probe(Generic[T]):
    """One question whole: the type it fills, the sh text that asks, and the parser of the answer.

    `parse` is pure and never raises; garbage gives `Unknown`. A `volatile` fact (free disk,
    temperature) is left out of the facts' digest.
    """

    name: str
    fact: type[T]
    script: str
    parse: Callable[[Section], Reading[T]]
    seconds: int = 5
    tool: str = ""
    volatile: bool = False

    @property
    def ask(self) -> Ask:
        return Ask(self.name, self.script, self.seconds, self.tool)


@dataclass(frozen=True, slots=True)
class Facts:
    """Readings by type: ``facts[Nvcc]`` is a ``Reading[Nvcc]`` to the type checker."""

    readings: Mapping[type, Reading[Any]] = field(default_factory=dict)

    def __getitem__(self, fact: type[T]) -> Reading[T]:
        return cast("Reading[T]", self.readings.get(fact, Unknown("not asked")))

    def replace(self, fact: type[T], reading: Reading[T]) -> Facts:
        """Return facts with one reading set anew."""
        return Facts({**self.readings, fact: reading})


def read(probes: Iterable[Probe[Any]], answer: Answer) -> Facts:
    """Return what the answer says, one reading a probe."""
    return Facts({probe.fact: _parsed(probe, answer[probe.name]) for probe in probes})


def _parsed(probe: Probe[T], section: Section) -> Reading[T]:
    """A section that never ended is unknown, whatever its first half looks like."""
    if section.exit is None:
        return Unknown(section.trouble, section.first)
    return probe.parse(section)


def looked(section: Section, *, absent: tuple[int, ...] = (127,)) -> Reading[Section]:
    """Return the section where it holds an answer: the first thing a parser asks.

    Time-outs and refusals are `Unknown`, exit codes in `absent` are `Absent`, others are answers.
    """
    if section.trouble:
        return Unknown(section.trouble, section.first)
    if section.exit in absent:
        return Absent(section.first)
    return Known(section, section.first)
