"""Check a command line against what its exact version accepts, before a 25-minute load does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ..core.nearest import did_you_mean
from ..core.rules import Finding, Level, Status
from ..core.words import Secret
from .build import SECRET_NAME
from .engine import CommandLine, Versions
from .quirks import MOVED, QUIRKS, Quirk
from .schema import Flag, Held, Schema, hold, libraries
from .words import Given, Words, read, strict

SOURCE = "docs/engines.md#what-each-version-accepts"
INSPECT = "ask the image itself: bringup engine.inspect IMAGE --host HOST"


STOPS = "the engine stops at a flag it does not know"
PLACES = "the parser stops at a word it cannot place"
NOBODY = "a variable that nobody reads has no effect"

KINDS: dict[str, tuple[Level, str, str]] = {
    "version-unknown": (
        Level.WARN,
        "The flags are not checked",
        "without its version nobody knows which flags it accepts",
    ),
    "version-between": (
        Level.NOTE,
        "The version lies between listed ones",
        "neighbouring versions mostly agree",
    ),
    "flag-unknown": (Level.BLOCK, "A flag that the engine does not know", STOPS),
    "flag-not-yet": (Level.BLOCK, "A flag of a later version", STOPS),
    "flag-gone": (Level.BLOCK, "A flag of an earlier version", STOPS),
    "flag-unsure": (
        Level.WARN,
        "A flag that this version may lack",
        "it came or went between two listed versions",
    ),
    "flag-abbreviated": (
        Level.WARN,
        "An abbreviated flag",
        "one more flag with this beginning makes it ambiguous",
    ),
    "flag-choice": (
        Level.BLOCK,
        "A word that is no choice",
        "the parser accepts the listed words only",
    ),
    "flag-needs-value": (
        Level.BLOCK,
        "A flag without its value",
        "the parser stops where a value is missing",
    ),
    "flag-extra-value": (Level.BLOCK, "A word that belongs to no flag", PLACES),
    "flag-twice": (Level.BLOCK, "A flag given twice", "the last one wins without a word"),
    "flag-deprecated": (Level.NOTE, "A deprecated flag", "it will be gone in a later version"),
    "secret-on-command-line": (
        Level.BLOCK,
        "A secret on the command line",
        "every process of a host can read a command line",
    ),
    "variable-not-read": (Level.BLOCK, "A variable that this version does not read", NOBODY),
    "pair-differs": (
        Level.BLOCK,
        "The roles' command lines fit each other",
        "workers of one pair must agree on it, or KV cannot pass between them",
    ),
    "front-port-taken": (
        Level.BLOCK,
        "The front and a worker listen on different ports",
        "the second one dies on a taken port",
    ),
    "variable-unknown": (Level.WARN, "A variable that nobody knows", NOBODY),
}
"""What can be wrong with a command line: how grave each kind is, its title, and why."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine's parser differs from plain argparse, and which variables are its own.

    `loose` flags take words beyond their listed choices, or in any case. `choices` replace listed
    ones. `lacks` are listed flags that this program's parser leaves out. `prefixes` are those of
    variables that only this engine reads.
    """

    packages: tuple[str, ...]
    prefixes: tuple[str, ...]
    spelling: Callable[[str], tuple[str, str | None]] = strict
    loose: frozenset[str] = frozenset()
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    abbreviates: bool = True
    repeats: frozenset[str] = frozenset()  # flags that add up when given again


def findings(
    line: CommandLine, versions: Versions, dialect: Dialect, asked: Iterable[Schema] = ()
) -> tuple[Finding, ...]:
    """Return what is wrong with a command line, the gravest kinds first."""
    told = tuple(asked)
    held = tuple(hold(name, versions.get(name, ""), told) for name in dialect.packages)
    words = read(line, dialect.spelling)
    return (
        *_versions(held),
        *(f for given in words.given for f in _flag(given, held, dialect)),
        *_twice(words, dialect.repeats),
        *(f for name in words.env for f in _variable(name, held, dialect)),
        *(f for quirk in QUIRKS for f in _quirk(quirk, words, versions)),
    )


def _found(kind: str, said: str, remedy: str, reason: str = "") -> Finding:
    level, title, usual = KINDS[kind]
    status = {Level.BLOCK: Status.FAIL, Level.WARN: Status.WARN}.get(level, Status.PASS)
    if kind == "version-unknown":
        status = Status.UNKNOWN
    return Finding(kind, title, status, level, "", (said,), reason or usual, remedy, SOURCE)


def _versions(held: tuple[Held, ...]) -> Iterator[Finding]:
    """Say where a version has no list of its own: what is checked then, and what is not."""
    for package in held:
        near = " and ".join(schema.version for schema in package.around)
        name = f"{package.package} {package.version}"
        if package.exact is None and not near:
            said = f"{package.package} version {package.version or 'not stated'}: nothing checked"
            yield _found("version-unknown", said, INSPECT)
        elif package.exact is None:
            yield _found("version-between", f"{name} has no list; checked against {near}", INSPECT)


def _flag(given: Given, held: tuple[Held, ...], dialect: Dialect) -> Iterator[Finding]:
    if not given.name:
        yield _found("flag-extra-value", f"{given.value!r} belongs to no flag", "remove it")
        return
    if given.name in dialect.lacks:
        said = f"{given.name} is a flag of `{held[-1].package} serve`, not of {held[0].package}"
        yield _found("flag-unknown", said, "remove it; the frontend serves HTTP")
        return
    lists = [schema for package in held for schema in package.lists]
    flag = next((s.flags[given.name] for s in reversed(lists) if given.name in s.flags), None)
    if flag is None:
        yield from _not_there(given, held, dialect)
        return
    yield from _unsure(given, held)
    yield from _values(given, flag, dialect)
    if flag.deprecated:
        yield _found("flag-deprecated", f"{given.name} is deprecated", "see the engine's --help")


def _unsure(given: Given, held: tuple[Held, ...]) -> Iterator[Finding]:
    """A flag that only one neighbour has may or may not be in the version between."""
    for package in held:
        having = [s.version for s in package.around if given.name in s.flags]
        if having and len(having) < len(package.around):
            said = f"{given.name}: in {package.package} {having[0]}, unsure in {package.version}"
            yield _found("flag-unsure", said, INSPECT)


def _not_there(given: Given, held: tuple[Held, ...], dialect: Dialect) -> Iterator[Finding]:
    if not all(package.lists for package in held):
        yield from _never_heard_of(given, held)
        return
    known = {name for package in held for schema in package.lists for name in schema.flags}
    longer = sorted(name for name in known if name.startswith(given.name))
    having = next(((p, p.with_flag(given.name)) for p in held if p.with_flag(given.name)), None)
    if having is not None:
        yield _other_version(given.name, *having)
    elif dialect.abbreviates and given.name.startswith("--") and len(longer) == 1:
        said = f"{given.word} is short for {longer[0]}"
        yield _found("flag-abbreviated", said, f"write {longer[0]}")
    else:
        said = f"{given.name} is no flag of {_names(held)}{did_you_mean(given.name, known)}"
        yield _found("flag-unknown", said, "correct or remove it")


def _never_heard_of(given: Given, held: tuple[Held, ...]) -> Iterator[Finding]:
    """Of a package whose version nobody told, only a flag of no listed version is doubtful."""
    if any(package.with_flag(given.name) for package in held):
        return
    ever = {name for package in held for schema in package.all for name in schema.flags}
    said = f"{given.name} is in no listed version of {_names(held)}{did_you_mean(given.name, ever)}"
    yield _found("flag-unsure", said, INSPECT)


def _other_version(name: str, package: Held, having: tuple[str, ...]) -> Finding:
    """Tell a flag that is not there yet from one that is gone."""
    where = f"{package.package} {package.version}"
    mine = package.lists[0].key if package.lists else None
    later = [s.version for s in package.all if s.version in having and mine and s.key > mine]
    if later:
        said = f"{name} is not yet in {where}; it is in {later[0]}"
        remedy = f"use {package.package} {later[0]} or later, or remove the flag"
        return _found("flag-not-yet", said, remedy)
    said = f"{name} is no longer in {where}; {having[-1]} still had it"
    return _found("flag-gone", said, "remove it; docs/engines.md says what took its place")


def _names(held: tuple[Held, ...]) -> str:
    return " or ".join(f"{p.package} {p.version}".strip() for p in held)


def _values(given: Given, flag: Flag, dialect: Dialect) -> Iterator[Finding]:
    if not flag.takes_value and given.values:
        said = f"{given.name} takes no value, {given.value} follows it"
        yield _found("flag-extra-value", said, f"remove {given.value}")
        return
    if flag.takes_value and not given.values:
        yield _found("flag-needs-value", f"{given.name} needs a value", "give it one")
        return
    if _is_secret(given):
        remedy = "give it as a variable of the role: those go into a file of mode 0600"
        yield _found("secret-on-command-line", f"{given.name} carries a secret", remedy)
    choices = dialect.choices.get(given.name, flag.choices)
    if choices and given.name not in dialect.loose and given.value not in choices:
        said = f"{given.name} {given.value} is no choice{did_you_mean(given.value, choices)}"
        yield _found("flag-choice", said, f"one of: {', '.join(choices)}")


def _is_secret(given: Given) -> bool:
    named = SECRET_NAME.search(given.name.upper().replace("-", "_")) is not None
    return bool(given.values) and (named or any(isinstance(v, Secret) for v in given.values))


def _twice(words: Words, repeats: frozenset[str]) -> Iterator[Finding]:
    by_name: dict[str, list[Given]] = {}
    for given in words.given:
        by_name.setdefault(given.name, []).append(given)
    for name, times in by_name.items():
        dotted = any("." in given.word for given in times)  # keys of one JSON value
        if name and len(times) > 1 and not dotted and name not in repeats:
            said = f"{name} is given {len(times)} times: {', '.join(g.value for g in times)}"
            yield _found("flag-twice", said, "set it once; where a knob makes it, set the knob")


def _variable(name: str, held: tuple[Held, ...], dialect: Dialect) -> Iterator[Finding]:
    lists = [s for package in held for s in package.lists if s.variables is not None]
    known = {n for schema in lists for n in schema.variables or ()}
    of_library = any(name in names for names in libraries().values())
    if of_library or name in known or not name.startswith(dialect.prefixes) or not lists:
        return
    if not all(package.lists for package in held) and any(p.with_variable(name) for p in held):
        return  # nobody told this package's version, and some versions read it
    moved, where = MOVED.get(name), _names(held)
    had = next((f"; {p.package} {v} read it" for p in held for v in p.with_variable(name)), "")
    if moved:
        said = f"{name} is not read by {where}{had}"
        yield _found("variable-not-read", said, f"use {moved.instead}", moved.reason)
    elif had:
        yield _found("variable-not-read", f"{name} is not read by {where}{had}", "remove it")
    else:
        said = f"{name} is no variable of {where}{did_you_mean(name, known)}"
        yield _found("variable-unknown", said, "correct or remove it")


def _quirk(quirk: Quirk, words: Words, versions: Versions) -> Iterator[Finding]:
    if quirk.package and quirk.package not in versions:
        return
    if not quirk.holds(versions.get(quirk.package, "")):
        return
    if evidence := quirk.when(words):
        status = Status.FAIL if quirk.level is Level.BLOCK else Status.WARN
        yield Finding(
            quirk.id, quirk.title, status, quirk.level, "", evidence, quirk.reason, quirk.remedy,
            quirk.source,
        )  # fmt: skip
