"""Spell arguments of a command line as options, as Invoke takes them.

Invoke hands a plain word to a task only where the task must have one, and refuses a word that looks
like a flag which the task has not: ``explain tp-size`` and ``explain --tp-size`` are neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.verb import Option, Verb
from .run import offered

CORE = ("--help", "--dry", "--echo", "--list", "--pty", "--hide")
"""Invoke's own flags that people write behind a task."""


def spelled(words: Iterable[str], verbs: Iterable[Verb], *, rest: str = "") -> list[str]:
    """Return words with each verb's argument as an option; `rest` is what stood behind ``--``."""
    known = {verb.name: offered(verb) for verb in verbs}
    found = list(_spelled(list(words), known))
    last = next((known[word] for word in reversed(found) if word in known), ())
    argument = _argument(last)
    if rest and argument and not any(word.startswith(argument.flag) for word in found):
        found.append(f"{argument.flag}={rest}")
    return found


def _argument(every: Iterable[Option]) -> Option | None:
    return next((one for one in every if one.is_argument and not one.is_repeatable), None)


def _spelled(words: list[str], known: Mapping[str, tuple[Option, ...]]) -> Iterator[str]:
    every: tuple[Option, ...] = ()
    argument: Option | None = None
    is_value = False
    for word in words:
        if is_value:
            is_value = False
            yield word
        elif word in known and not (argument and every):
            every, argument = known[word], _argument(known[word])
            yield word
        elif argument is not None and _is_meant(word, argument, every):
            yield f"{argument.flag}={word.partition('=')[0] if word[:2] == '--' else word}"
            argument = None
        else:
            is_value = _takes_value(word, every)
            yield word


def _is_meant(word: str, argument: Option, every: tuple[Option, ...]) -> bool:
    """Whether a word is the argument: a plain one, or a flag that is nobody's here."""
    if not word.startswith("-"):
        return True
    own = {option.flag for option in every} | {f"--no-{option.flag[2:]}" for option in every}
    flag = word.partition("=")[0]
    return argument.help.may_be_flag and flag[:2] == "--" and flag not in {*own, *CORE}


def _takes_value(word: str, every: tuple[Option, ...]) -> bool:
    return any(word == option.flag and option.type is not bool for option in every)
