"""A command line taken apart: where it ran, which programs, through which filters."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from .asked import HOST, Asked
from .entering import entered
from .filters import lines_kept
from .loops import loop_of
from .prefixes import without_prefixes
from .verdicts import verdict_of

_PIPES = ("|", "|&")
_SEPARATORS = ("|", "|&", "||", "&&", ";", "&")
_READERS = ("cat", "head", "tail", "zcat", "less", "more", "strings")
_RESHAPERS = (
    "awk",
    "sed",
    "cut",
    "tr",
    "sort",
    "uniq",
    "xargs",
    "jq",
    "column",
    "paste",
    "python3",
)
_SHELLS = ("sh", "bash", "dash", "zsh", "su")
_RUNS = re.compile(r"-[a-z]*c")  # bash -c, bash -lc


def asked(line: str) -> tuple[Asked, ...]:
    """Return the simple commands of a command line; () where it cannot be read."""
    place, rest = _place(line.strip())
    return tuple(_line(rest, place))


def _line(text: str, place: str) -> Iterator[Asked]:
    """Yield a loop as a whole, then each simple command."""
    if loop_of(text):
        yield Asked("for", (text,), place)
    yield from _simple(_tokens(text), place)


def _place(line: str) -> tuple[str, str]:
    """``worker: ls /models`` ran on the worker."""
    found = re.match(r"([A-Za-z][\w-]{0,30}):\s+(\S.*)$", line, re.DOTALL)
    return (found[1], found[2]) if found else (HOST, line)


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _simple(tokens: Sequence[str], place: str) -> Iterator[Asked]:
    """Cut at separators; a command behind a pipe becomes a filter of the one before it."""
    current: Asked | None = None
    pieces = [piece for piece in _pieces(tokens) if _without_redirects(piece[1])]
    for place_in_line, (joint, raw) in enumerate(pieces):
        words = _without_redirects(raw)
        if joint in _PIPES and current is not None:
            merged = joint == "|&" and current.errors == "shown"
            current = _filtered(replace(current, errors="merged") if merged else current, words)
            continue
        if current is not None:
            yield _followed(current, pieces[place_in_line:])
        inner = tuple(_under(raw, each) for each in _command(words, place))
        yield from inner[:-1]
        current = inner[-1] if inner else None
    if current is not None:
        yield current


def _followed(command: Asked, rest: Sequence[tuple[str, list[str]]]) -> Asked:
    """Note what comes behind a command: the exit code may be that one's."""
    if command.verdict is not None:
        return command
    is_excused = command.is_excused or any(joint in ("||", ";") for joint, _ in rest)
    return replace(command, is_excused=is_excused, verdict=verdict_of(rest))


def _under(words: Sequence[str], command: Asked) -> Asked:
    """Note where the words before a command, or around it, send its output."""
    errors, is_quiet = _errors(words), command.is_quiet or _is_silent(words)
    return replace(command, errors=command.errors if errors == "shown" else errors,
                   is_quiet=is_quiet)  # fmt: skip


def _is_silent(words: Sequence[str]) -> bool:
    """Tell whether the output itself goes to /dev/null."""
    for before, sign, target in zip(("", *words), words, words[1:], strict=False):
        if target == "/dev/null" and sign in (">", ">>", "&>", "&>>") and before != "2":
            return True
    return False


def _pieces(tokens: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    joint, words = "", list[str]()
    for token in tokens:
        if token in _SEPARATORS:
            if words:
                yield joint, words
            joint, words = token, []
        else:
            words.append(token)
    if words:
        yield joint, words


def _errors(words: Sequence[str]) -> str:
    """Return where what a program says of itself goes: "shown", "merged", or "gone"."""
    for number, sign, target in zip(words, words[1:], words[2:], strict=False):
        if (number, sign[:1], target) == ("2", ">", "/dev/null"):
            return "gone"
        if (number, sign, target) == ("2", ">&", "1"):
            return "merged"
    pairs = pairwise(words)
    return "gone" if ("&>", "/dev/null") in pairs else "shown"


def _without_redirects(words: Sequence[str]) -> list[str]:
    """Drop where output goes; what is read in stays, as ``<`` and a path at the end."""
    kept, source = list[str](), list[str]()
    skip = ""
    for word in words:
        if skip:
            source = ["<", word] if skip == "<" else source
            skip = ""
        elif re.fullmatch(r"[<>]+&?|&>+", word):
            skip = word
            if kept and kept[-1] in ("1", "2"):
                kept.pop()
        else:
            kept.append(word)
    return kept + source


def _command(words: Sequence[str], place: str) -> Iterator[Asked]:
    bare = without_prefixes(words)
    source = bare[-1] if bare[-2:-1] == ["<"] else ""
    bare = bare[:-2] if source else bare
    if not bare:
        return
    program = bare[0].rpartition("/")[2] or bare[0]
    rest = tuple(bare[1:])
    source = source or _file_of(program, rest)
    if source and program in (*_RESHAPERS, *_READERS):
        is_plain = program in _READERS and program not in ("head", "tail")
        yield Asked("cat", (source,), place, is_reshaped=not is_plain)
        return
    if program in _SHELLS and any(map(_RUNS.fullmatch, rest[:-1])):
        flag = next(i for i, word in enumerate(rest) if _RUNS.fullmatch(word))
        yield from _line(rest[flag + 1], place)
    elif inside := entered(program, rest):
        yield Asked(program, rest, place)
        yield from _command(inside[1], inside[0]) if inside[0] else ()
    elif program in ("grep", "egrep", "zgrep", "rg"):
        yield _searched(rest, place)
    elif program in _READERS:
        keeps = lines_kept(program, rest)
        yield Asked("cat", _files(program, rest), place, is_cut=keeps is not None, keeps=keeps)
    else:
        yield Asked(program, rest, place, called=bare[0])


def _file_of(program: str, rest: Sequence[str]) -> str:
    """``jq FILTER FILE`` reads a file: the last word, where there is a filter before it.

    Of Python's modules only ``json.tool`` is a filter; others run.
    """
    if program == "python3" and "-m" in rest and "json.tool" not in rest:
        return ""
    operands = [word for word in rest if not word.startswith("-")]
    return operands[-1] if program in _RESHAPERS and len(operands) > 1 else ""


def _files(program: str, rest: Sequence[str]) -> tuple[str, ...]:
    words = list(rest)
    kept: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("-n", "-c") and program in ("head", "tail") and words:
            words.pop(0)
        elif not word.startswith("-"):
            kept.append(word)
    return tuple(kept)


def _searched(rest: Sequence[str], place: str) -> Asked:
    """``grep PATTERN FILE`` is the file, cut."""
    pattern, flags, files = _grep(rest)
    return _narrowed(Asked("cat", files, place), pattern, flags)


def _grep(words: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Return the pattern of a grep, the letters of its flags, and the files it was given."""
    flags, patterns, files = "", list[str](), list[str]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-e", "-f", "--regexp") and rest:
            patterns.append(rest.pop(0))
        elif word in ("-A", "-B", "-C", "-m") and rest:
            rest.pop(0)
        elif re.match(r"-[ABCm]\d+$", word):
            continue
        elif word.startswith("--"):
            flags += {"--ignore-case": "i", "--count": "c", "--invert-match": "v"}.get(word, "")
        elif word.startswith("-") and len(word) > 1:
            flags += word[1:]
        elif not patterns:
            patterns.append(word)
        else:
            files.append(word)
    pattern = "|".join(patterns)
    if "E" not in flags and "P" not in flags:
        pattern = pattern.replace(r"\|", "|")
    return (re.escape(pattern) if "F" in flags else pattern), flags, tuple(files)


def _filtered(base: Asked, words: Sequence[str]) -> Asked:
    bare = without_prefixes(words)
    program = bare[0].rpartition("/")[2] if bare else ""
    if program in ("grep", "egrep", "zgrep", "rg"):
        pattern, flags, _ = _grep(bare[1:])
        return _narrowed(base, pattern, flags)
    if program == "wc":
        return replace(base, is_counted=True, is_cut=True)
    if program in ("head", "tail"):
        keeps = lines_kept(program, bare[1:])
        return base if keeps is None else replace(base, is_cut=True, keeps=keeps)
    return replace(base, is_reshaped=True) if program in _RESHAPERS else base


def _narrowed(base: Asked, pattern: str, flags: str) -> Asked:
    if "v" in flags:
        return replace(base, is_cut=True, is_thinned=True)
    whole = f"(?i){pattern}" if "i" in flags else pattern
    if base.pattern:  # the narrower of two greps is the later one
        whole = whole or base.pattern
    return replace(
        base,
        pattern=whole,
        is_cut=True,
        is_counted=base.is_counted or "c" in flags,
        is_reshaped=base.is_reshaped or "o" in flags,
        is_quiet=base.is_quiet or "q" in flags,
    )
