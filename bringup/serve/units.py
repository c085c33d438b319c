"""Run a worker by its systemd unit: enabled, started, stopped, and told why it does not stay.

A unit that was started has only begun: its script looks around before it becomes the worker. So a
start waits until the worker runs or the unit gives up, and a refusal of the script comes back with
its lines of the journal.
"""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import command
from ..readiness.stages import Worker

_ENABLED = r"""
e=$(systemctl is-enabled "$1" 2>/dev/null | head -n 1)
echo "${e:-absent}"
"""

# Exit 4 is the script's own refusal. Everything else that ends is told by who looks afterwards.
_START = r"""
unit=$1 engine=$2 name=$3
since=$(date +@%s)
systemctl reset-failed "$unit" 2>/dev/null
systemctl start --no-block "$unit" || exit
runs() {
  if [ -n "$engine" ]; then
    [ "$("$engine" inspect --format '{{.State.Status}}' "$name" 2>/dev/null)" = running ]
  else
    pid=$(property MainPID)
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -q ^BRINGUP_CONFIG=
  fi
}
property() { systemctl show --property="$1" --value "$unit"; }
while :; do
  # asked before the state: a start that ends in between is seen at the next look
  jobs=$(systemctl list-jobs --no-legend "$unit" 2>/dev/null)
  case $(property ActiveState) in
  active) runs && exit 0 ;;
  activating) [ "$(property SubState)" != auto-restart ] || break ;;
  inactive | failed) [ -n "$jobs" ] || break ;;
  esac
  sleep 0.2
done
[ "$(property ExecMainStatus)" = 4 ] || exit 0
systemctl stop "$unit"
journalctl --no-pager --output cat --since "$since" --unit "$unit" | grep -v '^$' | tail -n 20 >&2
exit 4
"""


def reload() -> Run:
    """Let systemd read the unit as it is written by now."""
    return Run(("systemctl", "daemon-reload"), 60)


def start(worker: Worker, seconds: int) -> Run:
    """Start a worker's unit and wait until it runs, refuses or ends."""
    words = (worker.unit, worker.engine if worker.contained else "", worker.name)
    return Run(("sh", "-c", _START, "sh", *words), seconds, told=f"systemctl start {worker.unit}")


def stop(unit: str, seconds: int) -> Run:
    """Stop a unit; one that is not there needs no stopping (exit 5)."""
    return Run(("systemctl", "stop", unit), seconds, answers=(0, 5))


def enable_step(worker: Worker) -> Step:
    """Return the wish that a worker's unit starts with its host."""
    words = ("systemctl", "enable", "--quiet", worker.unit)
    return _switch(worker, "enabled", (reload(), Run(words, 60)))


def disable_step(worker: Worker) -> Step:
    """Return the wish that a unit which is stopped stays so when its host starts."""
    return _switch(worker, "disabled", (Run(("systemctl", "disable", "--quiet", worker.unit), 60),))


def _switch(worker: Worker, wanted: str, actions: tuple[Run, ...]) -> Step:
    observe = f"set -- {command((worker.unit,))}\n{_ENABLED}"
    title = f"{wanted.removesuffix('d')} {worker.unit}"
    return Step(f"serve:{worker.unit}", title, observe, wanted, actions, 20)
