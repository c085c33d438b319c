"""YAML as people mean it: plain data, the line of every key, and no silent reinterpretation.

Reads the syntax tree from PyYAML's parser and builds the data itself, so that nothing is made
that the file does not say: no duplicate keys, no `no` that turns false, no `022` that turns 18,
no tags, no aliases. All faults are collected; only broken syntax ends the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from ..core.errors import Problem
from ..core.host import Origin
from .yaml_scalars import resolve

Path: TypeAlias = tuple[str | int, ...]
"""A key path: mapping keys and list positions from the top."""

LIMIT_BYTES = 1024 * 1024
DEEPEST = 24

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Events: TypeAlias = Iterator[yaml.Event]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a value stands; `raw` is its text when it was written bare, without quotes."""

    line: int
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One file: its data, the mark of every key path, and what is wrong with it as YAML."""

    file: str
    data: object = None
    marks: Mapping[Path, Mark] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def line(self, path: Path) -> int:
        """Return the line of a key path, or of the nearest part of it that exists."""
        return self.marks[self.known(path)].line if self.marks else 0

    def known(self, path: Path) -> Path:
        """Return the longest part of a path that stands in the file."""
        while path not in self.marks and path:
            path = path[:-1]
        return path

    def problem(self, path: Path, message: str) -> Problem:
        """Return a problem at a key path."""
        return Problem(self.file, self.line(path), "/".join(map(str, path)), message)

    def origin(self, path: Path) -> Origin:
        """Return where a key path stands."""
        return Origin(self.file, self.line(path), "/".join(map(str, path)))

    def origins(self, path: Path, keys: Iterable[str] | None) -> dict[str, Origin]:
        """Return where each key below a path stands."""
        return {key: self.origin((*path, key)) for key in keys or ()}


def read(content: bytes, file: str) -> Document:
    """Return the document in a file's content; never raises for what the content holds."""
    trouble = _bytes_trouble(content)
    if trouble is not None:
        line, message = trouble
        return Document(file, problems=(Problem(file, line, "", message),))
    text = content.decode()
    try:
        return _Reader(file, text).document()
    except _Stop as stop:
        return Document(file, problems=(Problem(file, stop.line, "", stop.message),))


_MARKS_OF_ORDER = {
    b"\xef\xbb\xbf": "starts with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": "is UTF-16: save it as UTF-8",
    b"\xfe\xff": "is UTF-16: save it as UTF-8",
}


def _bytes_trouble(content: bytes) -> tuple[int, str] | None:
    """Return the line and the fault of content that is no plain UTF-8 text, or None."""
    if len(content) > LIMIT_BYTES:
        return 0, f"is {len(content)} bytes long; at most {LIMIT_BYTES} are read"
    for mark, message in _MARKS_OF_ORDER.items():
        if content.startswith(mark):
            return 1, message
    try:
        content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        return _line_at(content, error.start), f"is not UTF-8: byte 0x{byte:02x} is out of place"
    if b"\r" in content:
        line = _line_at(content, content.index(b"\r"))
        return line, "has Windows line ends (CR LF): convert it, as with sed -i 's/\\r$//' FILE"
    if found := _UNPRINTABLE.search(content.decode()):
        return content.decode().count("\n", 0, found.start()) + 1, _unprintable(found[0])
    return None


# Control characters, and line ends that YAML 1.1 knows and editors do not count.
_UNPRINTABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def _unprintable(text: str) -> str:
    """Return what is wrong with a text that holds a character nobody sees, or ""."""
    found = _UNPRINTABLE.search(text)
    return f"holds the control character U+{ord(found[0]):04X}" if found else ""


def _line_at(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


class _Stop(Exception):
    """Carries a fault out of the walk, no more."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(slots=True)
class _Reader:
    """Walks the events of one text, collecting data, marks and problems."""

    file: str
    text: str
    marks: dict[Path, Mark] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def document(self) -> Document:
        events = _events(self.text)
        data = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if self.marks:
                    raise _Stop(_line(event), "holds a second document (---): keep one")
                data = self.value(next(events), events, ())
        return Document(self.file, data, self.marks, tuple(self.problems))

    def fault(self, event: yaml.Event, path: Path, message: str) -> None:
        self.problems.append(Problem(self.file, _line(event), "/".join(map(str, path)), message))

    def value(self, event: yaml.Event, events: _Events, path: Path) -> object:
        """Return the value that starts with this event; consumes its events to the end."""
        if len(path) > DEEPEST:
            raise _Stop(_line(event), f"is nested more than {DEEPEST} levels deep")
        self.marks.setdefault(path, Mark(_line(event)))
        self.refuse_extras(event, path)
        match event:
            case yaml.ScalarEvent():
                return self.scalar(event, path)
            case yaml.SequenceStartEvent():
                return self.sequence(events, path)
            case yaml.MappingStartEvent():
                return self.mapping(events, path)
        return None

    def refuse_extras(self, event: yaml.Event, path: Path) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            name = f"{sign}{getattr(event, 'anchor', '')}"
            self.fault(event, path, f"{name}: anchors and aliases are not read; use a group")
        elif tag := getattr(event, "tag", None):
            self.fault(event, path, f"tag {_short_tag(tag)} is not read; write a plain value")

    def scalar(self, event: yaml.ScalarEvent, path: Path) -> object:
        if trouble := _unprintable(event.value):
            self.fault(event, path, trouble)
            return None
        if event.style:  # quoted or a block: text, whatever it looks like
            return event.value
        self.marks[path] = Mark(self.marks[path].line, event.value)
        value, surprise = resolve(event.value)
        if surprise:
            self.fault(event, path, surprise)
        return value

    def sequence(self, events: _Events, path: Path) -> list[object]:
        items: list[object] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self.value(event, events, (*path, len(items))))
        return items

    def mapping(self, events: _Events, path: Path) -> dict[str, object]:
        items: dict[str, object] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self.key(event, path)
            if key in items:
                first = self.marks[(*path, key)].line
                self.fault(event, (*path, key), f"is given twice, first on line {first}")
                _Reader(self.file, self.text).value(next(events), events, (*path, key))
                continue
            self.marks[(*path, key)] = Mark(_line(event))
            items[key] = self.value(next(events), events, (*path, key))
        return items

    def key(self, event: yaml.Event, path: Path) -> str:
        """Return a key as written; a key is a word whatever it looks like."""
        if not isinstance(event, yaml.ScalarEvent):
            raise _Stop(_line(event), "a key should be one word: quote it if it holds [, { or *")
        self.refuse_extras(event, path)
        if event.value == "<<" and not event.style:
            self.fault(event, (*path, "<<"), "merge keys are not read; use a group or defaults")
        if trouble := _unprintable(event.value):
            raise _Stop(_line(event), f"a key {trouble}")
        return str(event.value)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _events(text: str) -> _Events:
    """Yield the events of a text; raises _Stop where its syntax is broken."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _stop(text, error) from error


def _stop(text: str, error: yaml.YAMLError) -> _Stop:
    mark, began = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if mark is None:
        return _Stop(1, f"is not YAML: {error}")
    lines = (*text.split("\n"), "")
    number = min(int(mark.line), len(lines) - 1)
    if "\t" in lines[number]:
        return _Stop(number + 1, "has a tab where YAML needs spaces")
    since = f" (begun on line {began.line + 1})" if began and began.line < number else ""
    line = lines[number].strip() or (lines[began.line].strip() if began else "")
    message = f"is not YAML: {getattr(error, 'problem', '')}{since}: {line!r}"
    return _Stop(number + 1, message + _hint(line))


def _hint(line: str) -> str:
    """Return what mends the usual slips with host patterns."""
    if re.search(r"(^|[:\-,\[]\s*)[@*%`&]", line):
        return "; quote a value that begins with @, *, %, & or `"
    if re.search(r"[\[{].*[\w.-]\[", line):
        return "; quote host patterns within [ ] or { }"
    return ""


def _short_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
