"""The questions about one worker on its host, and what the answers say: how it runs, its log.

Texts are POSIX sh for `core.script`; they read only. Docker and Podman answer alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..core.facts import looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import HostPath, command, quote
from .stages import Run, Worker
from .worker_image import HELD, parse_held

LOG_BYTES = 600_000
"""Most of a log that travels at a time: under a section's cap, over a traceback of every rank."""

GONE = Run("gone")


def asks(worker: Worker, cursor: str = "") -> tuple[Ask, Ask]:
    """Return the questions for a worker's state and for what its log gained since a cursor."""
    return (
        Ask(_name("run", worker), _run_text(worker), 15, worker.engine if worker.contained else ""),
        Ask(_name("log", worker), _log_text(worker, cursor), 30),
    )


def run_name(worker: Worker) -> str:
    return _name("run", worker)


def log_name(worker: Worker) -> str:
    return _name("log", worker)


def _name(kind: str, worker: Worker) -> str:
    return f"{kind}:{worker.name}"


# One inspection tells all: state; restarts and configuration; image by ID and by name; its build.
_INSPECT = rf"""
{HELD}
said=$("$1" inspect --format '{{{{json .State}}}}
{{{{.RestartCount}}}} {{{{index .Config.Labels "bringup.config"}}}}
{{{{.Image}}}} {{{{.Config.Image}}}}
{{{{index .Config.Labels "bringup.context"}}}}' "$2") || exit 70
line() {{ printf '%s\n' "$said" | sed -n "$1p"; }}
images=$(line 3)
tell_images() {{
  echo "held $(held "$1" "${{images%% *}}" "${{images#* }}")"
  echo "context $(line 4)"
}}
"""

_CONTAINER = rf"""
id=$("$1" ps --all --quiet --filter "name=^$2\$") || exit 70
[ -n "$id" ] || {{ echo gone; exit 0; }}
{_INSPECT}
line 1,2
date -u +%s
tell_images "$1"
"""

_PROCESS = r"""
[ -r "$1" ] || { echo gone; exit 0; }
read -r pid since config <"$1" || { echo gone; exit 0; }
now=$(sed -n 's/.*) [^Z] //p' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f19)
[ -n "$now" ] && [ "$now" = "$since" ] || { echo gone; exit 0; }
echo "running $pid $since $config"
cat /proc/uptime
getconf CLK_TCK 2>/dev/null || echo 100
"""

_UNIT = r"""
systemctl show --property=LoadState,ActiveState,Result,NRestarts \
  --property=ExecMainStatus,ExecMainCode,ExecMainStartTimestampMonotonic "$1" || exit 70
pid=$(systemctl show --property=MainPID --value "$1")
config=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | sed -n 's/^BRINGUP_CONFIG=//p')
echo "Config=$config"
cat /proc/uptime
"""


# Where a unit's script has no container (yet), the unit tells how it is.
_UNIT_AROUND = rf"""
id=$("$1" ps --all --quiet --filter "name=^$2\$") || exit 70
if [ -z "$id" ]; then
  systemctl show --property=LoadState,ActiveState,SubState,Result,NRestarts \
    --property=ExecMainStatus,ExecMainCode,ExecMainStartTimestampMonotonic "$3" || exit 70
  cat /proc/uptime
  exit 0
fi
{_INSPECT}
restarts=$(systemctl show --property=NRestarts --value "$3")
config=$(line 2)
line 1
echo "${{restarts:-0}} ${{config#* }}"
date -u +%s
tell_images "$1"
"""


def _run_text(worker: Worker) -> str:
    if worker.contained and worker.unit:
        return f"set -- {command((worker.engine, worker.name, worker.unit))}\n{_UNIT_AROUND}"
    if worker.contained:
        return f"set -- {command((worker.engine, worker.name))}\n{_CONTAINER}"
    if worker.unit:
        return f"set -- {quote(worker.unit)}\n{_UNIT}"
    return f"set -- {quote(HostPath(worker.state_file))}\n{_PROCESS}"


def _log_text(worker: Worker, cursor: str) -> str:
    if worker.contained:
        words = (worker.engine, worker.name, cursor, worker.unit)
        return f"set -- {command(words)}\n{_LOGS}"
    if worker.unit:
        return f"set -- {command((worker.unit, cursor))}\n{_JOURNAL}"
    return f"set -- {quote(HostPath(worker.log_file))} {quote(cursor or '-')}\n{_FILE}"


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

# A file that is shorter than it was has been started anew.
_FILE = rf"""
[ -r "$1" ] || {{ echo 0; exit 0; }}
size=$(wc -c <"$1")
from=$2
[ "$from" != - ] || from=$((size - {LOG_BYTES}))
[ "$from" -le "$size" ] || from=0
[ "$from" -ge 0 ] || from=0
[ $((size - from)) -le {LOG_BYTES} ] || from=$((size - {LOG_BYTES}))
echo "$size"
tail -c +$((from + 1)) "$1" | head -c $((size - from))
"""


def parse_run(worker: Worker, section: Section) -> Reading[Run]:
    """Return how a worker stands; unknown where nobody could look."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return Unknown(section.trouble or "no answer", section.first)
    if section.exit != 0:
        return Unknown(f"{worker.engine} does not answer", section.first)
    if section.first == "gone":
        return Known(GONE, section.first)
    lines = section.text.splitlines()
    try:
        if worker.contained and section.first.startswith("{"):
            return Known(_container(lines), section.first)
        return Known(_unit(lines) if worker.unit else _process(lines), section.first)
    except (ValueError, KeyError, IndexError) as error:
        return Unknown(f"no state in the answer: {error}", section.first)


def _container(lines: list[str]) -> Run:
    state: dict[str, Any] = json.loads(lines[0])
    count, _, config = lines[1].partition(" ")
    started = str(state["StartedAt"])
    up = state["Status"] == "running"
    told = dict(line.partition(" ")[::2] for line in lines[3:])
    born = _epoch(started)
    return Run(
        status=str(state["Status"]),
        exit=None if up else int(state["ExitCode"]),
        oom=bool(state.get("OOMKilled")),
        count=int(count or 0),
        started=started,
        age_s=None if born is None or not up else max(0.0, float(lines[2]) - born),
        config=_label(config),
        error=str(state.get("Error") or ""),
        held=parse_held(told.get("held")),
        context=_label(told.get("context", "")),
    )


def _label(text: str) -> str:
    """Return a label's value; engines differ in what they print for one that is not there."""
    return text.strip().removeprefix("<no value>")


def _epoch(text: str) -> float | None:
    """Return a time of docker (nanoseconds, which Python does not read) as seconds."""
    plain = re.sub(r"(\.\d{6})\d+", r"\1", text).replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        return None
    return None if moment.year < 1971 else moment.timestamp()


def _process(lines: list[str]) -> Run:
    _, pid, since, config = (*lines[0].split(" ", 3), "")[:4]
    uptime, ticks = float(lines[1].split()[0]), float(lines[2])
    age = max(0.0, uptime - int(since) / ticks)
    return Run("running", started=f"{pid} {since}", age_s=age, config=config)


def _unit(lines: list[str]) -> Run:
    told = dict(line.partition("=")[::2] for line in lines if "=" in line)
    if told.get("LoadState") == "not-found":
        return GONE
    active = told["ActiveState"]
    up = "running" if "Config" in told else "starting"  # else it is the script that looks around
    status = {"active": up, "activating": "restarting"}.get(active, "exited")
    begun = int(told.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    is_stopped = active == "inactive" and "Config" not in told  # its container is gone as well
    if status == "exited" and (is_stopped or not begun):
        return GONE
    killed = told.get("ExecMainCode") == "2"  # CLD_KILLED: the status is a signal
    code = int(told.get("ExecMainStatus") or 0) + (128 if killed else 0)
    uptime = float(lines[-1].split()[0])
    return Run(
        status,
        exit=None if status in ("running", "starting") else code,
        oom=told.get("Result") == "oom-kill",
        count=int(told.get("NRestarts") or 0),
        started=told.get("ExecMainStartTimestampMonotonic", ""),
        age_s=max(0.0, uptime - begun) if status == "running" else None,
        config=told.get("Config", ""),
    )


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
        marks = [line for line in lines if line.startswith("-- cursor: ")]
        kept = tuple(line for line in lines if not line.startswith("-- "))
        return Tail(kept, marks[-1].removeprefix("-- cursor: ").strip() if marks else cursor)
    size = lines[0].strip()
    return Tail(tuple(lines[1:]), size if size.isdecimal() else cursor)


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
