"""Spell arguments of a command line as options, as Invoke takes them.

Invoke hands a plain word to a task only where the task must have one, and refuses a word that looks
like a flag which the task has not: ``explain tp-size`` and ``explain --tp-size`` are neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.nearest import did_you_mean
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


def placed(words: Iterable[str], every: Iterable[Option]) -> list[str]:
    """Return words with arguments that were spelled as options in their place, for click."""
    flags = {option.flag for option in every if option.is_argument and not option.is_repeatable}
    found: list[str] = []
    is_value = False
    for word in words:
        flag, equals, value = word.partition("=")
        if not is_value and flag in flags:
            found += [value] if equals else []
            is_value = not equals
        else:
            is_value = False
            found.append(word)
    return found


def fault(words: Iterable[str], verbs: Iterable[Verb]) -> tuple[str, str]:
    """Return the verb, and what is wrong with a command line for it; "" where nothing is.

    Invoke would end with exit code 1 and without a word of what there is.
    """
    known = {verb.name: offered(verb) for verb in verbs}
    name, given, is_value = "", set[str](), False
    for word in words:
        flag, equals, _ = word.partition("=")
        if is_value or flag in CORE or (word[:1] == "-" and word[:2] != "--"):
            is_value = False
        elif word in known:
            name, given = word, set()
        elif not name or word[:2] != "--":
            return name, _no_word(name, word, known)
        elif flag not in _flags(known[name]):
            near = did_you_mean(flag, [option.flag for option in known[name]])
            return name, f"cannot run {name}: no option {flag}{near}"
        else:
            given.add(flag)
            is_value = not equals and _takes_value(flag, known[name])
    return name, _lacking(name, given, known.get(name, ()))


def _lacking(name: str, given: set[str], every: tuple[Option, ...]) -> str:
    missing = next((o for o in every if o.is_needed and o.flag not in given), None)
    return f"cannot run {name}: {missing.called} is missing" if missing else ""


def _no_word(name: str, word: str, known: Mapping[str, tuple[Option, ...]]) -> str:
    if name:
        return f"cannot run {name} with {word!r}: it takes no such word"
    return f"cannot run {word!r}: no such verb{did_you_mean(word, known)}"


def _flags(every: Iterable[Option]) -> set[str]:
    return {name for o in every for name in (o.flag, f"--no-{o.flag[2:]}")}


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
    flag = word.partition("=")[0]
    return argument.help.may_be_flag and flag[:2] == "--" and flag not in {*_flags(every), *CORE}


def _takes_value(word: str, every: tuple[Option, ...]) -> bool:
    return any(word == option.flag and option.type is not bool for option in every)
