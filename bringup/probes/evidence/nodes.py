"""On which machine a command ran, where its line says so: ``ssh gpu01 …``, ``gpu01: …``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from .asked import HOST
from .prefixes import without_prefixes

SIDES = ("worker", "frontend", "prefill", "decode")
"""Places whose commands tell of a deployment's sides rather than of the host itself."""

_SSH_VALUE = re.compile(r"-[BbcDEeFIiJLlmOopQRSWw]$")
"""Options of ssh that take the next word as their value."""


_PROMPT = re.compile(
    r"\s*(?:\[?(?:[\w.-]+@)(?P<host>[\w.-]+)[^\]#$|;]*\]?)?[#$]\s+(?P<command>\S.*)$", re.DOTALL
)
"""``$ …``, ``user@gpu01:~$ …``, ``[root@gpu01 ~]# …``."""


def node_of(line: str) -> tuple[str, str]:
    """Return the machine that a line names, or "", and the command without it."""
    named = re.match(r"([A-Za-z][\w.-]{0,60}):\s+(\S.*)$", line.strip(), re.DOTALL)
    if named and named[1] not in (*SIDES, HOST):
        return named[1], named[2]
    if prompt := _PROMPT.match(line):
        return prompt["host"] or "", prompt["command"]
    if not re.search(r"\bssh\s", line):
        return "", line
    try:
        words = without_prefixes(shlex.split(line))
    except ValueError:
        return "", line
    return _over_ssh(words[1:]) or ("", line) if words[:1] == ["ssh"] else ("", line)


def _over_ssh(words: list[str]) -> tuple[str, str] | None:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if _SSH_VALUE.match(rest[0]) else rest[1:]
    host, *command = [word for word in rest if word != "--"] if "--" in rest[:2] else rest or [""]
    if not command:
        return None
    whole = command[0] if len(command) == 1 else " ".join(map(_kept_together, command))
    return host.rpartition("@")[2], whole


def _kept_together(word: str) -> str:
    return shlex.quote(word) if re.search(r"\s", word) else word


def node_told_of(lines: Mapping[str, Iterable[str]]) -> str:
    """Return the machine that a case is about: "" is the one that needs no name.

    `lines` has the programs that each line asks. Where all lines that ask a machine name the same
    one, it is that one.
    """
    nodes = {node_of(line)[0] for line, programs in lines.items() if set(programs) - _ABOUT_OTHERS}
    return nodes.pop() if len(nodes) == 1 else ""


_ABOUT_OTHERS = frozenset({"curl", "nc", "getent", "nats", "etcdctl", "ping", "ssh", "scp"})
"""Programs that ask over the network, from wherever they run."""
