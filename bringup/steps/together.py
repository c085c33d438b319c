"""Looks at files, all of a host in one section: one stat, one sha256sum, whatever their number.

What a shared look could not tell (a file that nobody may read, one that went meanwhile, contents
too long for one section, a disk that hangs) is asked again by the step's own look.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ..core.script import CAP_BYTES, Answer, Ask, Section
from ..core.steps import FileLook, Step
from .file import REACHED, SHOWN_BYTES, observing

MOST_FILES = 200
"""Files of one section: their paths and sums stay well below the limit of a script."""

MOST_S = 120
SHOWN_TOGETHER = CAP_BYTES // 2

# Answers lines "at NUMBER STATE", "stat MODE OWNER NAME" and "SUM  NAME"; then, for files whose
# sum is not the wanted one, "show NAME" and the content behind "+". $1 holds the wanted lines of
# sums, $2 the names that are never shown.
_LOOK = r"""
cd "$R/" || exit
as_wanted=$1 hidden=$2
shift 2
n=0
for f do
  shift
  if [ -L "$f" ]; then echo "at $n link $(readlink "$f")"
  elif [ -f "$f" ]; then set -- "$@" "$f"
  elif [ -e "$f" ]; then echo "at $n not a file"
  elif reached "$f"; then echo "at $n absent"
  fi
  n=$((n + 1))
done
[ $# -gt 0 ] || exit 0
stat -c 'stat %a %U:%G %n' "$@"
sums=$(sha256sum "$@")
printf '%s\n' "$sums"
set -f
IFS='
'
for line in $sums; do
  f=${line#*  }
  case $as_wanted$hidden in *"
$line
"* | *"
$f
"*) continue ;; esac
  size=$(wc -c <"$f") && [ "$size" -le "$room" ] || continue
  room=$((room - size))
  echo "show $f"
  head -c "$shown" "$f" | sed 's/^/+/'
  echo
done
"""


def apart(steps: Iterable[Step]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that share looks, and those that look for themselves."""
    every = tuple(steps)
    shared = tuple(step for step in every if _shares(step))
    if len(shared) < 2:
        return (), every
    ids = {step.id for step in shared}
    return shared, tuple(step for step in every if step.id not in ids)


def _shares(step: Step) -> bool:
    """A step whose look was changed afterwards keeps it; so does one of a name with odd bytes."""
    look = step.look
    return look is not None and look.path.isprintable() and "\\" not in look.path and (
        step.observe == observing(look)
    )  # fmt: skip


def asks(shared: tuple[Step, ...]) -> tuple[Ask, ...]:
    """Return the sections that look at the files of these steps."""
    return tuple(_ask(number, part) for number, part in _parts(shared))


def _parts(shared: tuple[Step, ...]) -> Iterator[tuple[int, tuple[Step, ...]]]:
    for start in range(0, len(shared), MOST_FILES):
        yield start // MOST_FILES, shared[start : start + MOST_FILES]


def _ask(number: int, steps: tuple[Step, ...]) -> Ask:
    looks = [step.look for step in steps if step.look is not None]
    wanted = "".join(f"\n{look.sum}  .{look.path}\n" for look in looks)
    hidden = "".join(f"\n.{look.path}\n" for look in looks if not look.shows)
    words = shlex.join((wanted, hidden, *(f".{look.path}" for look in looks)))
    head = f"{REACHED}room={SHOWN_TOGETHER} shown={SHOWN_BYTES}\nset -- {words}\n"
    seconds = min(MOST_S, sum(step.seconds for step in steps))
    return Ask(f"files {number}", head + _LOOK, seconds)


def sections(shared: tuple[Step, ...], answer: Answer) -> dict[str, Section]:
    """Return a section by step, as its own look would have given it; what is not told is left out.

    `answer` holds the sections of `asks`.
    """
    found: dict[str, Section] = {}
    for number, part in _parts(shared):
        said = _Said(answer[f"files {number}"].text.split("\n"))
        for place, step in enumerate(part):
            text = said.text(place, step.look) if step.look is not None else None
            if text is not None:
                found[step.id] = Section(step.id, 0, text)
    return found


class _Said:
    """What one section told of its files."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._states: dict[str, str] = {}
        self._stats: dict[str, tuple[str, str]] = {}
        self._sums: dict[str, str] = {}
        self._contents: dict[str, list[str]] = {}
        shown: list[str] = []
        for line in lines:
            kind, _, rest = line.partition(" ")
            if line.startswith("+"):
                shown.append(line[1:])
            elif kind == "at":
                number, _, state = rest.partition(" ")
                self._states[number] = state
            elif kind == "stat" and rest.count(" ") >= 2:
                mode, owner, name = rest.split(" ", 2)
                self._stats[name] = (mode, owner)
            elif kind == "show":
                shown = self._contents[rest] = []
            elif len(kind) == 64 and rest.startswith(" "):
                self._sums[rest[1:]] = kind

    def text(self, place: int, look: FileLook) -> str | None:
        """Return the text that a step's own look gives, None where that is not known."""
        if str(place) in self._states:
            return self._states[str(place)]
        name = f".{look.path}"
        stat, sum_ = self._stats.get(name), self._sums.get(name)
        if stat is None or sum_ is None:
            return None
        head = " ".join(("file", *(stat if look.with_owner else stat[:1]), sum_))
        if sum_ == look.sum or not look.shows:
            return head
        if name not in self._contents:
            return None
        return "\n".join((head, *self._contents[name]))
