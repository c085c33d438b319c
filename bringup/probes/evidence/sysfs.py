"""Which line of an output belongs to which of several files, where the output shows it."""

from __future__ import annotations

import re
from itertools import product

from .asked import Asked, Output

_TREE = "/sys/"
"""Its files hold one line each."""


def by_path(asked: Asked, output: Output) -> list[tuple[str, str]] | None:
    """Return what each file holds; None where one file was asked, or files that are not told apart.

    Files show whose a line is by ``PATH:VALUE`` (grep), by ``==> PATH <==`` (head, tail), or by
    their order: as many lines as files, and no file that could not be read.
    """
    paths = expanded(asked.operands)
    if not all(path.startswith(_TREE) for path in paths):
        return None
    if told := _headed(output.stdout) or _prefixed(output.stdout):
        return told
    if len(paths) < 2 or any(re.search(r"[*?\[$`]", path) for path in paths):
        return None
    lines = output.stdout.splitlines()
    is_whole = output.code == 0 and not asked.is_cut and not asked.is_reshaped
    is_even = len(lines) == len(paths) and all(map(str.strip, lines))
    return list(zip(paths, lines, strict=True)) if is_whole and is_even else []


def expanded(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words as a shell expands ``{a,b}`` and ``{0..7}``; globs stay."""
    return tuple(each for word in words for each in _braces(word))


def _braces(word: str) -> list[str]:
    parts = re.split(r"(?<!\$)\{([^{}]*(?:,|\.\.)[^{}]*)\}", word)
    if len(parts) == 1 or len(parts) > 9:
        return [word]
    choices = [_choices(part) if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(each) for each in product(*choices)]


def _choices(inner: str) -> list[str]:
    if found := re.fullmatch(r"(\d{1,3})\.\.(\d{1,3})", inner):
        first, last = int(found[1]), int(found[2])
        return [str(number) for number in range(first, last + 1)]
    return inner.split(",")


def _headed(text: str) -> list[tuple[str, str]]:
    """Read ``==> PATH <==`` and what is below it."""
    parts = re.split(r"(?m)^==> (/\S+) <==$", text)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [(path, body.strip("\n")) for path, body in pairs if body.strip()]


_LINE = re.compile(r"(?m)^(/sys/[^\s:]*(?::[^\s:/]+)*/[^\s:]+): ?(.*)$")  # PCI paths have colons


def _prefixed(text: str) -> list[tuple[str, str]]:
    """Read ``PATH:VALUE``; lines of one path are joined."""
    found: dict[str, list[str]] = {}
    for path, value in re.findall(_LINE, text):
        found.setdefault(path, []).append(value)
    return [(path, "\n".join(values)) for path, values in found.items()]
