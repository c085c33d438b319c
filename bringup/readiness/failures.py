"""What goes wrong while a deployment comes up, as rows of data, and how a log or a state names one.

The rows are in `failures/*.yml`; `edge.catalogue` reads them. A row is told by lines of a log, by
signs of the state (see `signs`), or by both. Matching is pure: text in, matches out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..core.rules import Finding, Status
from ..core.version import within
from .log_lines import is_mere, is_void, lines_of, shown
from .signs import said

WINDOW = 400
"""Lines within which all parts of a signature that needs several must stand: one traceback."""

GRAVE = 55
"""Weight from which a row that is not sure may be the cause of a surer one that comes later."""

CONSEQUENCE = 10
"""Weight up to which a row only tells that an earlier line has the cause."""

STANDING = 20
"""Weight up to which a row of signs only tells how things stand: needless where a log surely tells
why. What only may be why leaves it standing."""

SECONDARY = 72
"""Weight up to which a row that comes later than a cause is told as its consequence."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One known way to fail.

    `says`: patterns of which one line must match one. `also`: patterns that other lines near it
    must match, each. `signs`: words of the state that must all hold. A row with both `says` and
    `signs` needs both. `checks` are ids of findings that look at the same cause before a start.
    """

    id: str
    title: str
    cause: str
    fix: str
    sources: tuple[str, ...]
    says: tuple[re.Pattern[str], ...] = ()
    also: tuple[re.Pattern[str], ...] = ()
    signs: tuple[str, ...] = ()
    command: str = ""
    certain: bool = False
    weight: int = 50  # the higher one is told first; a mere consequence has 10
    family: str = ""
    engines: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # package: [since, until)
    given: Mapping[str, str] = field(default_factory=dict)  # of the deployment, as `moe: "true"`
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What is known besides the log: nothing in it excludes a row unless it surely differs."""

    engine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    signs: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A row that fits: the line that shows it (1-based number, 0 when none), and what backs it.

    `told` are the named groups that the line filled. `mere`: it is told at level INFO or below.
    `follows`: a surer cause stands before it, of which it is most likely a consequence.
    """

    failure: Failure
    evidence: str
    line: int = 0
    backed_by: tuple[Finding, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    mere: bool = False
    follows: bool = False

    @property
    def cause(self) -> str:
        """The cause with the groups of the signature put in, as {port} or {flag}."""
        return self._filled(self.failure.cause)

    @property
    def fix(self) -> str:
        return self._filled(self.failure.fix)

    @property
    def command(self) -> str:
        return self._filled(self.failure.command)

    @property
    def is_certain(self) -> bool:
        """Surely the cause: by its own words, or because a check of the host says the same.

        What a program tells at level INFO or below it goes on from, so that it is none by itself.
        """
        return (self.failure.certain and not self.mere) or bool(self.backed_by)

    def _filled(self, text: str) -> str:
        """Put in what the line told; what it did not tell is a word to replace, as HOST is."""
        return re.sub(r"\{(\w+)\}", lambda name: self.told.get(name[1]) or name[1].upper(), text)


def diagnose(
    failures: Iterable[Failure], log: str | Iterable[str] = "", case: Case | None = None
) -> tuple[Match, ...]:
    """Return the rows that fit, the likeliest cause first, each once.

    Surely known causes come before others, root causes before their consequences, and of equal
    ones that which the log told first.
    """
    known = case or Case()
    lines = lines_of(log) if isinstance(log, str) else list(log)
    matches = [m for f in failures if fits(f, known) and (m := _match(f, lines, known))]
    if any(m.failure.says and m.failure.weight > CONSEQUENCE and m.is_certain for m in matches):
        matches = [m for m in matches if m.failure.says or m.failure.weight > STANDING]
    return tuple(sorted(_with_consequences(matches), key=_order))


def _with_consequences(matches: list[Match]) -> list[Match]:
    """Tell what comes later than a cause and weighs less as its consequence.

    A line tells one cause: a row that says less of a line than another row is left out.
    """
    surest: dict[int, int] = {}
    for match in matches:
        if match.is_certain and match.line:
            surest[match.line] = max(surest.get(match.line, 0), match.failure.weight)
    kept = [m for m in matches if m.failure.weight >= surest.get(m.line, 0)]
    return [replace(m, follows=any(_leads_to(cause, m) for cause in kept)) for m in kept]


def _leads_to(cause: Match, match: Match) -> bool:
    """Return whether one is told before the other, weighs more, and either of them is sure."""
    if not cause.line or match.failure.weight > min(SECONDARY, cause.failure.weight - 1):
        return False
    is_grave = cause.is_certain or (match.is_certain and cause.failure.weight >= GRAVE)
    return cause.line < match.line and is_grave


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All rows with what is known of a case, made so that a growing log is read once."""

    rows: tuple[Failure, ...]
    case: Case = Case()
    suspect: re.Pattern[str] = re.compile(r"(?!)")

    def is_suspect(self, line: str) -> bool:
        """Return whether some row has a word about a line: the others need not be kept."""
        return self.suspect.search(line) is not None

    def is_sure(self, lines: Iterable[str]) -> bool:
        """Return whether lines name a root cause surely, whatever the state."""
        rows = (row for row in self.rows if row.says and not row.signs and row.weight > CONSEQUENCE)
        return any(match.is_certain for match in diagnose(rows, lines, self.case))


def catalogue(rows: Iterable[Failure], case: Case | None = None) -> Catalogue:
    """Return a catalogue of rows for a case."""
    known = case or Case()
    kept = tuple(rows)
    words = (pattern.pattern for row in kept for pattern in (*row.says, *row.also))
    bare = (re.sub(r"\(\?P<\w+>", "(", word) for word in words)
    return Catalogue(kept, known, re.compile("|".join(f"(?:{word})" for word in bare)))


def _order(match: Match) -> tuple[bool, int, int, str]:
    return (
        match.follows or not match.is_certain,
        -match.failure.weight,
        match.line,
        match.failure.id,
    )


def fits(failure: Failure, case: Case) -> bool:
    """Return whether a row may speak of a case: an engine or version that surely differs may not.

    A row about a state speaks only where the state holds.
    """
    if failure.engines and case.engine and case.engine not in failure.engines:
        return False
    for package, (since, until) in failure.versions.items():
        if within(case.versions.get(package, ""), since, until) is False:
            return False
    if any(case.given.get(key, value) != value for key, value in failure.given.items()):
        return False
    return set(failure.signs) <= case.signs


def _match(failure: Failure, lines: list[str], case: Case) -> Match | None:
    wrong = (Status.FAIL, Status.WARN)  # unknown backs nothing
    backed = tuple(f for f in case.findings if f.id in failure.checks and f.status in wrong)
    if not failure.says:
        return Match(failure, said(failure.signs), 0, backed)
    mere = None
    for number, line in _hits(failure, lines):
        near = lines[max(0, number - WINDOW) : number + WINDOW]
        if all(any(pattern.search(other) for other in near) for pattern in failure.also):
            match = _matched(failure, line, number, backed)
            if not match.mere:
                return match
            mere = mere or match
    return mere


def _matched(failure: Failure, line: str, number: int, backed: tuple[Finding, ...]) -> Match:
    hits = [hit for pattern in failure.says if (hit := pattern.search(line))]
    told = {name: text for hit in reversed(hits) for name, text in hit.groupdict().items() if text}
    evidence = shown(line, min(hit.start() for hit in hits))
    return Match(failure, evidence, number + 1, backed, told, is_mere(line))


def _hits(failure: Failure, lines: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines):
        if any(pattern.search(line) for pattern in failure.says) and not is_void(line):
            yield number, line


def last_words(lines: Iterable[str], count: int = 6) -> tuple[str, ...]:
    """Return the last lines that say something, for a failure that no row knows."""
    told = [line for line in lines if line.strip()]
    kept = (*telling(told)[-count:], *told[-2:])
    return tuple(dict.fromkeys(shown(line) for line in kept))


def telling(lines: Iterable[str]) -> list[str]:
    """Return the lines that sound like a fault, and that a program does not go on from."""
    return [
        line for line in lines if _TELLING.search(line) and not (is_mere(line) or is_void(line))
    ]


def unexplained(found: Iterable[Match], lines: Iterable[str]) -> tuple[str, ...]:
    """Return the last words of a log where nothing in it names a root cause, else ()."""
    is_told = any(match.failure.weight > CONSEQUENCE for match in found)
    return () if is_told else last_words(lines)


_TELLING = re.compile(r"error|fatal|cannot|fail|exception|denied|refused|killed", re.IGNORECASE)


def addressed(text: str, names: Mapping[str, str]) -> str:
    """Return a command with words such as HOST, IMAGE or CONTAINER replaced, where known."""
    return re.sub(r"\b[A-Z][A-Z_]{2,}\b", lambda word: names.get(word[0]) or word[0], text)
