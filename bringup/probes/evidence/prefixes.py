"""Words before a command that change how it runs, not what it asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_VALUES: Mapping[str, tuple[str, ...]] = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "--user", "--group"),
    "env": ("-u", "-C", "--unset", "--chdir"),
    "timeout": ("-k", "-s", "--signal", "--kill-after"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "stdbuf": ("-i", "-o", "-e"),
    "command": (),
    "exec": ("-a",),
    "time": ("-f", "-o"),
    "nohup": (),
    "setsid": (),
    "unbuffer": (),
    "nsenter": ("-t", "--target", "-S", "-G"),
    "chroot": (),
    "taskset": (),
    "numactl": ("-N", "-m", "-C", "-i", "-p"),
}
"""Programs that run the rest of their line, with the options that take a value."""

_COUNTED: Mapping[str, int] = {"timeout": 1, "chroot": 1, "taskset": 1}
"""Words that belong to the program itself before the command: a time, a folder, a mask."""


def without_prefixes(words: Sequence[str]) -> list[str]:
    """Drop ``sudo -n``, ``LC_ALL=C``, ``timeout 10``, ``nsenter -t 1 -m`` and the like."""
    rest = list(words)
    while rest and not _stands_alone(rest):
        program = rest[0].rpartition("/")[2]
        if re.match(r"[A-Za-z_]\w*=", rest[0]):
            rest.pop(0)
        elif program in _VALUES and len(rest) > 1:
            rest = _behind(program, rest[1:])
        else:
            break
    return rest


def _stands_alone(words: Sequence[str]) -> bool:
    """``sudo -n true``, ``command -v nvcc`` and ``env`` ask something themselves."""
    program, rest = words[0].rpartition("/")[2], words[1:]
    if program == "sudo":
        return "-l" in rest or rest[-1:] == ["true"] or not any(map(_is_command, rest))
    if program == "command":
        return rest[:1] in (["-v"], ["-V"])
    if program == "nsenter":  # into a container's process, not back to the host's first one
        return re.search(r"(?:-t|--target)[ =]?1\b(?!\d)", " ".join(rest)) is None
    if program == "numactl":
        return "-H" in rest or "--hardware" in rest or "-s" in rest
    return program == "env" and not any(map(_is_command, rest))


def _is_command(word: str) -> bool:
    return not word.startswith("-") and "=" not in word


def _behind(program: str, rest: Sequence[str]) -> list[str]:
    words = list(rest)
    while words and (words[0].startswith("-") or (program == "env" and "=" in words[0])):
        if words[0] == "--":
            words.pop(0)
            break
        takes = words[0] in _VALUES[program] and len(words) > 1
        words = words[2:] if takes else words[1:]
    return words[_COUNTED.get(program, 0) :]
