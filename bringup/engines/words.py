"""Read a command line back: which flags with which values stand in it, as its parser would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..core.words import Secret
from .engine import CommandLine

_OPTION = re.compile(r"--?[A-Za-z]")
_LEVEL = re.compile(r"-O\d?")


@dataclass(frozen=True, slots=True)
class Given:
    """One flag as it was given: its plain name, its values, and the word as it stands."""

    name: str
    values: tuple[str | Secret, ...]
    word: str

    @property
    def value(self) -> str:
        """The first value as text, "" without one; a secret stays masked."""
        return str(self.values[0]) if self.values else ""


@dataclass(frozen=True, slots=True)
class Words:
    """A command line taken apart."""

    given: tuple[Given, ...]
    env: Mapping[str, str | Secret]

    def has(self, flag: str) -> bool:
        return any(given.name == flag for given in self.given)

    def value(self, flag: str) -> str | None:
        """Return the last value that a flag was given ("" for a bare one), or None."""
        return next((g.value for g in reversed(self.given) if g.name == flag), None)

    def variable(self, name: str) -> str | None:
        """Return a variable's text, or None where it is not set."""
        return str(self.env[name]) if name in self.env else None


def flexible(word: str) -> tuple[str, str | None]:
    """Return a word's flag and value as vLLM reads them: `_` for `-`, dotted keys, ``-O3``."""
    if _LEVEL.fullmatch(word):
        return "--optimization-level", word[2:] or None
    name, equals, value = word.partition("=")
    flag = name.partition(".")[0]
    flag = "--" + flag[2:].replace("_", "-") if flag.startswith("--") else flag
    return flag, value if equals else None


def strict(word: str) -> tuple[str, str | None]:
    """Return a word's flag and its value behind "=", as argparse reads them."""
    name, equals, value = word.partition("=")
    return name, value if equals else None


def read(line: CommandLine, spelling: Callable[[str], tuple[str, str | None]] = strict) -> Words:
    """Return the flags and values of a command line, its program left out."""
    return Words(tuple(_given(line.argv[line.program :], spelling)), line.env)


def _given(
    words: Iterable[str | Secret], spelling: Callable[[str], tuple[str, str | None]]
) -> Iterator[Given]:
    name, values, as_is = "", list[str | Secret](), ""
    for word in words:
        if not isinstance(word, str) or not _OPTION.match(word):
            values.append(word)
            continue
        if name or values:
            yield Given(name, tuple(values), as_is)
        (name, value), as_is = spelling(word), word
        values = [] if value is None else [value]
    if name or values:
        yield Given(name, tuple(values), as_is)
