"""The question for what a worker's log has gained, and the answer, in whole lines.

A program writes a line in pieces, and half of one says something else: an error that an INFO line
quotes, 1/1 of 1/161. So a line counts once it has ended, or once nobody goes on with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.script import Section
from ..core.words import HostPath, command
from .stages import Worker

LOG_BYTES = 600_000
"""Most of a log that travels at a time: under a section's cap, over a traceback of every rank."""

QUIET_S = 60
"""Seconds after which a line that has no end is told as it is: its program waits, or hangs."""

ALIVE = r"""
# alive FILE: whether the process that a state file names runs; sets pid, since and config
alive() {
  [ -r "$1" ] && read -r pid since config <"$1" || return 1
  now=$(sed -n 's/.*) [^Z] //p' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f19)
  [ -n "$now" ] && [ "$now" = "$since" ]
}
"""


def log_text(worker: Worker, cursor: str) -> str:
    if worker.contained:
        words = (worker.engine, worker.name, cursor, worker.unit)
        return f"set -- {command(words)}\n{_LOGS}"
    if worker.unit:
        return f"set -- {command((worker.unit, cursor))}\n{_JOURNAL}"
    log, state = HostPath(worker.log_file), HostPath(worker.state_file)
    return f"set -- {command((log, cursor or '-', state))}\n{_FILE}"


# Without a cursor only the latest run counts: what an earlier one said may be mended since. The
# container engine notes the start a moment after the first lines may have come.
_LOGS = rf"""
since=$3
if [ -n "$4" ] && [ -z "$("$1" ps --all --quiet --filter "name=^$2\$")" ]; then
  begun=$(systemctl show --property=InactiveExitTimestamp --value "$4")
  [ -n "$begun" ] || exit 0
  journalctl --no-pager --output short-iso-precise --utc --unit "$4" --since "$begun" |
    sed -n 's/^\([0-9T:-]*\.[0-9]*\)+00:*00 [^ ]* [^ ]*: /\1000Z /p' | tail -c {LOG_BYTES}
  exit 0
fi
began='{{{{.State.StartedAt}}}}'
if [ -z "$since" ]; then
  since=$("$1" inspect --format "$began" "$2" 2>/dev/null) || exit 0
  case $since in 0001-*) exit 0 ;; esac
  seconds=$(date -u -d "$since" +%s 2>/dev/null) && since=$((seconds - 2))
fi
"$1" logs --timestamps --since "$since" "$2" 2>&1 | tail -c {LOG_BYTES}
"""

_JOURNAL = rf"""
if [ -n "$2" ]; then
  journalctl --no-pager --output cat --show-cursor --unit "$1" --after-cursor "$2"
else
  begun=$(systemctl show --property=InactiveExitTimestamp --value "$1")
  [ -n "$begun" ] || exit 0
  journalctl --no-pager --output cat --show-cursor --unit "$1" --since "$begun"
fi | tail -c {LOG_BYTES}
"""

# A file that is shorter than it was has been started anew. A bar that rewrites its line ends it by
# a carriage return.
_FILE = rf"""
{ALIVE}
[ -r "$1" ] || {{ echo 0; exit 0; }}
size=$(wc -c <"$1")
from=$2 cut=
[ "$from" != - ] || from=$((size - {LOG_BYTES}))
[ "$from" -le "$size" ] || from=0
[ "$from" -ge 0 ] || from=0
[ $((size - from)) -le {LOG_BYTES} ] || from=$((size - {LOG_BYTES}))
[ "$from" -eq 0 ] || [ "$from" = "$2" ] || cut=cut
piece() {{ tail -c +$((from + 1)) "$1" | head -c $((size - from)); }}
goes_on() {{
  alive "$2" || return 1
  wrote=$(stat -c %Y "$1" 2>/dev/null) || return 0
  [ $(($(date +%s) - wrote)) -lt {QUIET_S} ]
}}
if [ -n "$(piece "$1" | tail -c 1 | tr -d '\r\n')" ] && goes_on "$1" "$3"; then
  size=$((size - $(piece "$1" | tr '\r' '\n' | tail -n 1 | wc -c)))
fi
echo "$size $cut"
piece "$1"
"""


@dataclass(frozen=True, slots=True)
class Tail:
    """New lines of a log, and the cursor from which to read on."""

    lines: tuple[str, ...]
    cursor: str


def parse_log(worker: Worker, section: Section, cursor: str) -> Tail:
    """Return what a log has gained; an answer that was cut off gains nothing."""
    if section.exit is None or section.trouble:
        return Tail((), cursor)
    if worker.contained:
        return _stamped(section.text, cursor)
    lines = section.text.split("\n")
    if worker.unit:
        if len(section.text.encode()) >= LOG_BYTES - 1:  # it begins amid a line
            lines = lines[1:]
        marks = [line for line in lines if line.startswith("-- cursor: ")]
        kept = tuple(line for line in lines if not line.startswith("-- "))
        return Tail(kept, marks[-1].removeprefix("-- cursor: ").strip() if marks else cursor)
    size, _, cut = lines[0].strip().partition(" ")
    return Tail(tuple(lines[2 if cut else 1 :]), size if size.isdecimal() else cursor)


_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)) ?(.*)", re.DOTALL)


def _stamped(text: str, cursor: str) -> Tail:
    """Engines give the last line again: `--since` includes its own moment."""
    last, lines = cursor, list[str]()
    for stamp, line in _stamps(text):
        if stamp and stamp <= cursor:
            continue
        lines.append(line)
        last = max(last, stamp)
    return Tail(tuple(lines), last)


def _stamps(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n"):
        hit = _STAMP.match(line)
        if hit:
            yield hit[1], hit[2]
