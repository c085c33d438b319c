"""Steps that start and stop a worker: what runs there now, and what its written script then does.

The state of a worker is ``STATUS CONFIG``: how its container or process stands, and the digest of
the configuration that it was started with (``foreign`` where bringup did not start it). ``image ID
ID`` follows where it was made from another image than its image's name stands for now.
"""

from __future__ import annotations

from ..core.steps import Observation, Run, State, Step
from ..core.words import HostPath, Word, command, quote
from ..readiness.stages import Held, Worker
from ..readiness.worker_image import HELD, is_pinned
from . import units

START_S = 180
STOP_S = 180
"""The scripts give a worker 60 s to end by itself; a large one takes long to free its memory."""

PULL_S = 900

GONE = "gone"
FOREIGN = "foreign"

# Where the image's name stands for another image by now, the state tells both.
_CONTAINER = rf"""
{HELD}
id=$("$1" ps --all --quiet --filter "name=^$2\$") || exit 70
[ -n "$id" ] || {{ echo gone; exit 0; }}
form='{{{{.State.Status}}}} {{{{index .Config.Labels "bringup.config"}}}}
{{{{.Image}}}} {{{{.Config.Image}}}}
{{{{json .Config}}}}'
told=$("$1" inspect --format "$form" "$2") || exit 70
line() {{ printf '%s\n' "$told" | sed -n "$1p"; }}
said=$(line 1)
case $said in *' ' | *'<no value>' | *' ') said="${{said%% *}} foreign" ;; esac
case $3$said in
tagged*" foreign") ;;
tagged*)
  images=$(line 2)
  both=$(held "$1" "${{images%% *}}" "${{images#* }}")
  [ "${{both% *}}" = "${{both#* }}" ] || said="$said image $both"
  ;;
esac
printf '%s\n' "$said"
line 3
"""

_PROCESS = r"""
[ -r "$1" ] || { echo gone; exit 0; }
read -r pid since config <"$1" || { echo gone; exit 0; }
now=$(sed -n 's/.*) [^Z] //p' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f19)
[ -n "$now" ] && [ "$now" = "$since" ] || { echo gone; exit 0; }
echo "running $config"
tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null
"""

_UNIT = r"""
state=$(systemctl show --property=ActiveState --value "$1") || exit 70
case $state in
active | reloading) ;;
inactive | failed) echo gone; exit 0 ;;
*) echo "$state"; exit 0 ;;
esac
pid=$(systemctl show --property=MainPID --value "$1")
config=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | sed -n 's/^BRINGUP_CONFIG=//p')
echo "running ${config:-unknown}"
tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null
"""


def observe_text(worker: Worker) -> str:
    """Return the sh text that prints a worker's state, then what it runs."""
    if worker.contained:
        names = "pinned" if is_pinned(worker) else "tagged"
        return f"set -- {command((worker.engine, worker.name, names))}\n{_CONTAINER}"
    if worker.unit:
        return f"set -- {quote(worker.unit)}\n{_UNIT}"
    return f"set -- {quote(HostPath(worker.state_file))}\n{_PROCESS}"


def start_step(worker: Worker, *, recreate: bool = False) -> Step:
    """Return the wish that a worker runs as its script has it."""
    before = stop_actions(worker) if recreate else ()
    title = f"{'start anew' if recreate else 'start'} {worker.name}"
    return Step(
        step_id(worker), title, observe_text(worker), f"running {worker.config}",
        (*before, *_start(worker)), 20, risk="restarts a service" if recreate else "safe",
    )  # fmt: skip


def stop_step(worker: Worker) -> Step:
    """Return the wish that a worker runs no more, and leaves nothing behind."""
    return Step(
        step_id(worker), f"stop {worker.name}", observe_text(worker), GONE, stop_actions(worker),
        20, risk="restarts a service",
    )  # fmt: skip


def step_id(worker: Worker) -> str:
    return f"serve:{worker.name}"


def _start(worker: Worker) -> tuple[Run, ...]:
    if worker.unit:
        return (units.reload(), units.start(worker, START_S))
    script = _script(worker, "--start", START_S)
    return (_pull(worker), script) if worker.is_service else (script,)


def _pull(worker: Worker) -> Run:
    """Bring a service's image by its digest, where it is not there yet."""
    text = '"$1" image inspect "$2" >/dev/null 2>&1 || "$1" pull --quiet "$2"'
    return Run(("sh", "-c", text, "sh", worker.engine, worker.pulls), PULL_S)


def stop_actions(worker: Worker) -> tuple[Run, ...]:
    """Return what stops a worker; the script keeps the container's log and removes it."""
    script = _script(worker, "--stop", STOP_S)
    return (units.stop(worker.unit, STOP_S), script) if worker.unit else (script,)


def _script(worker: Worker, word: str, seconds: int) -> Run:
    words: tuple[Word, ...] = ("sh", HostPath(worker.script), word)
    return Run(words, seconds)


def is_drifted(seen: Observation) -> bool:
    """Whether a worker runs, ours, with another configuration."""
    status, _, config = seen.found.partition(" ")
    return seen.state is State.CHANGE and status == "running" and config != FOREIGN


def moved_image(seen: Observation) -> Held | None:
    """Return the image that a worker runs and the one it would start, where they differ."""
    words = seen.found.split()
    return Held(words[3], words[4]) if len(words) == 5 and words[2] == "image" else None


def is_foreign(seen: Observation) -> bool:
    """Whether the name is taken by what bringup did not start, running or not."""
    return seen.found.endswith(f" {FOREIGN}")
