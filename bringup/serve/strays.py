"""Clear a host of what a deployment left there: its containers, units and processes."""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import HostPath, Word, command
from .steps import STOP_S

# containers: by label; units: by the script that they run; processes: by their written number
_FOUND = r"""
containers() {
  [ -n "$contained" ] && command -v docker >/dev/null || return 0
  docker ps --all --filter "label=bringup.deployment=$deployment" --format '{{.Names}}'
}
units() {
  for unit in /etc/systemd/system/bringup-*.service; do
    [ -r "$unit" ] && grep -q "^ExecStart=.*/$deployment/serve_" "$unit" || continue
    unit=${unit##*/}
    systemctl is-active --quiet "$unit" || systemctl is-enabled --quiet "$unit" || continue
    printf '%s\n' "$unit"
  done
}
processes() {
  for file in "$folder"/*.pid; do
    [ -r "$file" ] && read -r pid since _ <"$file" || continue
    now=$(sed -n 's/.*) [^Z] //p' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f19)
    [ -n "$now" ] && [ "$now" = "$since" ] && printf '%s\n' "$pid"
  done
}
"""

_OBSERVE = r"""
names=$(containers) || exit 70
names=$(printf '%s\n' "$names" $(units) $(processes) | sed '/^$/d')
[ -n "$names" ] && echo $names || echo none
"""

_STOP = r"""
for unit in $(units); do systemctl disable --quiet --now "$unit"; done
for pid in $(processes); do kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid"; done
tries=300
while [ -n "$(processes)" ] && [ "$tries" -gt 0 ]; do tries=$((tries - 1)); sleep 0.2; done
for pid in $(processes); do kill -KILL -- "-$pid"; done
names=$(containers) || exit 70
for name in $names; do docker stop --time 60 "$name" >/dev/null; docker rm "$name" >/dev/null; done
"""


def strays_step(deployment: str, folder: str, *, contained: bool) -> Step:
    """Return the wish that nothing of a deployment runs on a host, nor starts with it.

    `folder` is where its scripts are written; `contained`: whether any of it runs in containers.
    """
    words: tuple[Word, ...] = (deployment, HostPath(folder), "1" if contained else "")
    given = "deployment=$1 folder=$2 contained=$3\n"
    observe = f"set -- {command(words)}\n{given}{_FOUND}{_OBSERVE}"
    told = f"stop containers, units and processes of {deployment}"
    stop = Run(("sh", "-c", f"{given}{_FOUND}{_STOP}", "sh", *words), STOP_S, told=told)
    title = f"stop what {deployment} left here"
    return Step("serve:strays", title, observe, "none", (stop,), 20, risk="restarts a service")
