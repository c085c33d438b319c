"""One POSIX sh script of many framed sections, and the way back from its output to sections.

Each section has its own time limit on the host, its own output cap, and its exit code. An answer
that was cut off leaves the sections that were not closed *unfinished*, never empty.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LIMIT_BYTES = 100 * 1024
"""A script travels as one argument; the kernel's limit for one is 128 KiB (docs/decisions/0002)."""

CAP_BYTES = 1024 * 1024
"""Most bytes that a section may answer with."""

TIMED_OUT = (124, 137)
"""Exit codes of `timeout`: the limit was reached, or the command had to be killed."""

# `tool` finds a program of the host: by PATH where the root is /, else under the root folder only,
# so that a probe from a container never mistakes its own tools for the host's.
PRELUDE = r"""
tool() {
  if [ -z "$R" ]; then command -v "$1"; return; fi
  for d in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    if [ -x "$R$d/$1" ]; then printf '%s\n' "$R$d/$1"; return 0; fi
  done
  return 1
}
ask() {
  t=$(tool "$1") || { printf '%s: not found\n' "$1"; return 127; }
  shift
  "$t" "$@"
}
"""

# A reader with its own limit: a process in uninterruptible sleep survives SIGKILL and keeps the
# pipe open, and must not keep the whole answer waiting. Sections only read, so they end by SIGKILL
# at once. No `timeout` gets descriptors beyond the first three: busybox's leaves a watcher behind
# for up to a second, which closes only those, and the shell would wait for the rest.
_FRAME = r"""
exec 3>&1
HUNG=' '
section() {
  printf '@@%s begin %s\n' "$N" "$1" >&3
  case $HUNG in
  *" $3 "*)
    printf '|not run: an earlier call of %s did not answer\n@@%s end %s 124\n' "$3" "$N" "$1" >&3
    return ;;
  esac
  rc=$( { { timeout -s KILL "$2" sh -c "$P
$4" </dev/null 2>&1 3>&- 4>&-; echo $? >&4; } 2>/dev/null |
    timeout $(($2 + 2)) head -c __CAP__ 3>&- 4>&- | sed 's/^/|/' >&3; } 4>&1)
  case $rc in 124 | 137) [ -z "$3" ] || HUNG="$HUNG$3 " ;; esac
  printf '\n@@%s end %s %s\n' "$N" "$1" "${rc:-137}" >&3
}
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to a host: a name, the sh text that answers it, and its limit in seconds.

    Sections of the same `tool` share its fate: once one of them timed out, the others are not run.
    """

    name: str
    script: str
    seconds: int = 5
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """What one question gave: exit code (None when the answer was cut off) and text."""

    name: str
    exit: int | None
    text: str

    @property
    def first(self) -> str:
        """The first line that is not blank, as evidence."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @property
    def trouble(self) -> str:
        """Why nobody could look, or "" when the command ended by itself."""
        if self.exit is None:
            return "the answer was cut off"
        if self.exit in TIMED_OUT:
            return self.first if self.first.startswith("not run:") else "timed out"
        if self.exit == 126 or "ermission denied" in self.text[-2000:]:
            return "permission denied"
        return ""


_NO_ROOT = '[ -d "$R" ] || { printf \'@@%s no-root\\n\' "$N"; exit 0; }'


def lacks_root(text: str, *, nonce: str) -> bool:
    """Tell whether a script said that the root folder it was composed for is not there."""
    return f"@@{nonce} no-root" in text.splitlines()


def compose(asks: Iterable[Ask], *, nonce: str, root: str = "/") -> str:
    """Return the sh script that asks everything in one trip; reads only, writes nothing.

    Raises ValueError when it would be longer than `LIMIT_BYTES`.
    """
    prefix = "" if root == "/" else root.rstrip("/")
    lines = [
        f"N={shlex.quote(nonce)}",
        f"R={shlex.quote(prefix)}",
        *([_NO_ROOT] if prefix else ()),
        "LC_ALL=C LANG=C",
        "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin",
        f"P={shlex.quote(PRELUDE)}",
        "export R LC_ALL LANG PATH",
        'command -v timeout >/dev/null || timeout() { while [ "$1" != sh ] && [ "$1" != head ]; '
        'do shift; done; "$@"; }',
        _FRAME.replace("__CAP__", str(CAP_BYTES)),
        *(_call(ask) for ask in asks),
        "printf '@@%s done\\n' \"$N\"",
        "exit 0",
    ]
    script = "\n".join(lines)
    if len(script.encode()) > LIMIT_BYTES:
        raise ValueError(f"the script is {len(script.encode())} bytes, more than {LIMIT_BYTES}")
    return script


def _call(ask: Ask) -> str:
    words = (ask.name, str(ask.seconds), ask.tool, ask.script)
    return "section " + " ".join(shlex.quote(word) for word in words)


@dataclass(frozen=True, slots=True)
class Answer:
    """All sections of one trip by name; `complete` is False when the answer was cut off."""

    sections: Mapping[str, Section]
    complete: bool

    def __getitem__(self, name: str) -> Section:
        return self.sections.get(name) or Section(name, None, "")


def split(text: str, *, nonce: str) -> Answer:
    """Return the sections in an answer. Lines outside a section (a login banner) are dropped."""
    mark = f"@@{nonce} "
    found: dict[str, Section] = {}
    name, body, complete = "", list[str](), False
    for line in text.split("\n"):
        if not line.startswith(mark):
            body.append(line[1:]) if name and line.startswith("|") else None
            continue
        kind, _, rest = line[len(mark) :].strip().partition(" ")
        if kind == "begin":
            name, body = rest, []
            found[name] = Section(name, None, "")
        elif kind == "end" and rest.rpartition(" ")[0] == name:
            found[name] = Section(name, _number(rest.rpartition(" ")[2]), "\n".join(body))
            name = ""
        elif kind == "done":
            complete = True
    if name:
        found[name] = Section(name, None, "\n".join(body))
    return Answer(found, complete)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def seconds_for(asks: Iterable[Ask]) -> int:
    """Return the longest that a script of these sections may take, in seconds."""
    return sum(ask.seconds + 3 for ask in asks) + 10
