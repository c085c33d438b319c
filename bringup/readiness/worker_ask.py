"""The questions about one worker on its host, and what the answers say: how it runs, its log.

Texts are POSIX sh for `core.script`; they read only. Docker and Podman answer alike.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from ..core.facts import looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import HostPath, command, quote
from .stages import Run, Worker
from .worker_image import HELD, parse_held
from .worker_log import ALIVE, log_text

GONE = Run("gone")


def asks(worker: Worker, cursor: str = "") -> tuple[Ask, Ask]:
    """Return the questions for a worker's state and for what its log gained since a cursor."""
    return (
        Ask(_name("run", worker), _run_text(worker), 15, worker.engine if worker.contained else ""),
        Ask(_name("log", worker), log_text(worker, cursor), 30),
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

_PROCESS = rf"""
{ALIVE}
alive "$1" || {{ echo gone; exit 0; }}
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
