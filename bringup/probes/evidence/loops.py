"""What a shell loop over files printed: ``for d in …; do echo $d; cat $d/…; done``.

The body is a template of the output: what it echoes, then what each file holds. A value belongs to
a name only where the loop prints that name beside it, or where its items are written out and every
line has its place. All else stays unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .sysfs import expanded

_LOOP = re.compile(
    r"^\s*for\s+(?P<name>[A-Za-z_]\w*)\s+in\s+(?P<items>[^;\n]+?)\s*(?:;|\n)\s*do\s+"
    r"(?P<body>.+?)\s*(?:;|\n)\s*done\b\s*(?:2>&1|2>/dev/null)?\s*(?P<filters>\|.*)?$",
    re.DOTALL,
)
_FORMS = {
    "state": r"\d: [A-Z_]+",
    "phys_state": r"\d: \w+",
    "rate": r"[\d.]+ Gb/sec(?: \([^)\n]*\))?",
    "link_layer": r"InfiniBand|Ethernet",
    "mtu": r"\d+",
    "speed": r"-?\d+",
    "numa_node": r"-?\d+",
    "fw_ver": r"\d+\.\d+\.\d+",
}
"""What files hold, by their names; a file of another name may hold any line."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over files: its variable, its items as written, and its commands."""

    name: str
    items: tuple[str, ...]
    body: str
    is_filtered: bool = False  # lines may be missing, or in another order

    @property
    def folder(self) -> str:
        """Where the items are, where all are in one folder; "" otherwise."""
        folder = self.items[0].rstrip("/").rpartition("/")[0]
        return folder if len(self.items) == 1 and "*" not in folder else ""


def loop_of(line: str) -> Loop | None:
    """Return the loop that a line is, or None."""
    found = _LOOP.match(line)
    if found is None:
        return None
    items = re.sub(r"\$\(seq (\d+) (\d+)\)", r"{\1..\2}", found["items"])
    words = expanded(tuple(items.split()))
    return Loop(found["name"], words, found["body"], is_filtered=bool(found["filters"]))


def files_told(loop: Loop, text: str) -> Iterator[tuple[str, str]]:
    """Yield path and value of each file whose name the output tells."""
    parts = tuple(_parts(loop))
    lines = "".join(part.text for part in parts).count("\n")
    if not parts or (loop.is_filtered and lines > 1):
        return
    if any(re.search(r"[*?\[$`(]", item) for item in loop.items):
        yield from _by_name(loop, parts, text)
    elif not loop.is_filtered:
        yield from _by_place(loop, parts, text)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the template: a literal text, or a file with the variable in its path."""

    text: str = ""
    path: str = ""


def _parts(loop: Loop) -> Iterator[_Part]:
    """Yield the template of one round; nothing where a command is not understood."""
    found: list[_Part] = []
    for command in re.split(r"\s*(?:;|&&|\n)\s*", loop.body):
        piece = _command_parts(command.strip())
        if piece is None:
            return
        found += piece
    yield from found


def _command_parts(command: str) -> list[_Part] | None:
    if not command:
        return []
    if said := re.fullmatch(r"(?:echo(?P<stay> -n)?|printf) (?P<text>.+)", command):
        text = re.sub(r"^([\"'])(.*)\1$", r"\2", said["text"], flags=re.DOTALL)
        is_printf = command.startswith("printf")
        if is_printf and ("%" in text or '"' in text):
            return None
        end = "" if said["stay"] or is_printf else "\n"
        return [*_said(text.replace("\\n", "\n").replace("\\t", "\t")), _Part(end)]
    if read := re.fullmatch(r"cat ((?:\"?[\w/.${}#*,-]+\"?\s*)+?)(?: 2>/dev/null)?", command):
        paths = expanded(tuple(word.strip('"') for word in read[1].split()))
        return [part for path in paths for part in (_Part(path=path), _Part("\n"))]
    return None


def _said(text: str) -> list[_Part]:
    """Take an echoed text apart at ``$(cat PATH)`` and ``$(< PATH)``."""
    pieces = re.split(r"\$\((?:cat |<\s*)\"?([^)\s\"]+)\"?\)", text)
    return [_Part(path=piece) if i % 2 else _Part(piece) for i, piece in enumerate(pieces)]


def _variable(name: str) -> str:
    """Return a pattern of the variable: whole, or only its last component."""
    bare = rf"\$\{{?{name}\}}?"
    return rf"\$\(basename \"?{bare}\"?\)|\$\{{{name}##\*/\}}|\$\{{{name}\}}|\${name}\b"


def _by_name(loop: Loop, parts: Sequence[_Part], text: str) -> Iterator[tuple[str, str]]:
    """Match rounds that begin with the name that the loop prints."""
    first = "".join(part.text for part in parts[:1])
    if not re.search(_variable(loop.name), first):
        return
    for found in re.finditer(rf"(?m)^{_pattern(loop, parts, '')}(?=\n|\Z)", text):
        shown = found["item"]
        if "/" not in loop.items[0] or shown.startswith("/"):
            item = shown
        elif loop.folder:
            item = f"{loop.folder}/{shown}"
        else:
            return
        for place, part in enumerate(each for each in parts if each.path):
            yield _put(loop.name, part.path, item), found[f"v{place}"]


def _by_place(loop: Loop, parts: Sequence[_Part], text: str) -> Iterator[tuple[str, str]]:
    """Match all rounds, one for each item that is written out, to the last line."""
    rounds = [_pattern(loop, parts, item, f"r{i}") for i, item in enumerate(loop.items[:64])]
    found = re.fullmatch("".join(rounds) + r"\n*", text if text.endswith("\n") else f"{text}\n")
    if found is None:
        return
    for i, item in enumerate(loop.items[:64]):
        for place, part in enumerate(each for each in parts if each.path):
            yield _put(loop.name, part.path, item), found[f"r{i}v{place}"]


def _pattern(loop: Loop, parts: Sequence[_Part], item: str, prefix: str = "") -> str:
    """Return a pattern of one round; without an item, its name is a group."""
    pattern, place, is_named = "", 0, False
    for part in parts:
        if part.path:
            file = _put(loop.name, part.path, loop.items[0]).rpartition("/")[2]
            form = _FORMS.get(file, r"[^\n]*")
            pattern += f"(?P<{prefix}v{place}>{form})"
            place += 1
            continue
        pieces = re.split(f"({_variable(loop.name)})", part.text)
        for i, piece in enumerate(pieces):
            if i % 2 == 0:
                pattern += re.escape(piece)
            elif item:
                pattern += re.escape(item if "##" not in piece and "basename" not in piece
                                     else item.rpartition("/")[2])  # fmt: skip
            else:
                pattern += r"(?P=item)" if is_named else r"(?P<item>[\w/.:-]*?\w)"
                is_named = True
    return pattern if item else pattern.removesuffix(re.escape("\n"))


def _put(name: str, path: str, item: str) -> str:
    """Return a path with the item in the variable's place."""
    last = item.rpartition("/")[2]
    path = re.sub(rf"\$\{{{name}##\*/\}}|\$\(basename \"?\${name}\"?\)", lambda _: last, path)
    return re.sub(rf"\$\{{{name}\}}|\${name}\b", lambda _: item, path)
