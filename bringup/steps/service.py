"""Step kind: a service of systemd: enabled and active, with a drop-in, restarted when it is due."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.steps import Run, Step
from ..core.words import HostPath, Word, command, quote
from .file import text_file

RESTARTS = "restarts a service"

# A static unit cannot be enabled and needs not be.
_OBSERVE = r"""
u={unit}
e=$(systemctl is-enabled "$u" 2>/dev/null | head -n 1)
a=$(systemctl is-active "$u" 2>/dev/null | head -n 1)
case $e in static | indirect | generated | alias | enabled-runtime) e=enabled ;;
"" | not-found) e=absent ;; esac
echo "$e ${{a:-inactive}}"
"""

_START = r"""
e=$(systemctl is-enabled "$1" 2>/dev/null | head -n 1)
case $e in
masked*) echo "$1 is masked: somebody wants it off; systemctl unmask $1 if you know better" >&2
  exit 3 ;;
"" | not-found) echo "there is no unit $1" >&2; exit 3 ;;
enabled | static | indirect | generated | alias) ;;
*) systemctl enable "$1" || exit ;;
esac
# A simple service counts as started before its program has had a chance to fail.
systemctl start "$1" && sleep 1 && systemctl is-active --quiet "$1" && exit 0
systemctl status --no-pager -n 15 "$1" >&2
exit 1
"""


def service_step(unit: str, *, why: str = "", follows: Iterable[str] = ()) -> Step:
    """Return the step for a service that is enabled and active."""
    start = Run(("sh", "-c", _START, "sh", unit), 180, told=f"systemctl enable --now {unit}")
    return Step(
        id=f"service:{unit}",
        title=f"enable and start {unit}",
        observe=_OBSERVE.format(unit=quote(unit)),
        wanted="enabled active",
        actions=(start,),
        why=why,
        follows=tuple(follows),
    )


# A process that started before a file was put in place has not read it. A second's rounding is on
# the safe side: the start is told a second late at most.
_DUE = r"""
u={unit}
pid=$(systemctl show -p MainPID --value "$u" 2>/dev/null)
[ "${{pid:-0}}" != 0 ] || {{ echo "not running"; exit 0; }}
start=$(($(date +%s) - $(ps -o etimes= -p "$pid")))
for f in {files}; do
  [ -e "$f" ] || continue
  [ "$(stat -c %Z "$f")" -le "$start" ] || {{ echo "older than ${{f#"$R"}}"; exit 0; }}
done
echo current
"""

_RESTART = r"""
if [ "$2" = docker ] && systemctl is-active --quiet "$1"; then
  running=$(timeout 20 docker ps --format '{{.Names}}' 2>&1) || {
    echo "$1 is not restarted: cannot tell whether containers run:" $running >&2
    exit 3
  }
  [ -z "$running" ] || {
    echo "$1 is not restarted: containers run, and would end:" $running >&2
    exit 3
  }
fi
# From docker 23 on it tells whether it would start as configured; older ones lack the flag.
if [ "$2" = docker ] && command -v dockerd >/dev/null; then
  said=$(timeout 20 dockerd --validate 2>&1) || case $said in
  *"nknown flag"* | *"not defined"* | "") ;;
  *)
    echo "$1 is not restarted: it would not start again:" "$said" >&2
    exit 3 ;;
  esac
fi
systemctl daemon-reload && systemctl restart "$1" && exit 0
systemctl status --no-pager -n 15 "$1" >&2
exit 1
"""


def restart_step(
    unit: str, *, files: Iterable[str], follows: Iterable[str] = (), why: str = ""
) -> Step:
    """Return the step that restarts a service which started before one of its files was written.

    docker is not restarted while any container runs, nor where nobody can tell whether one does,
    nor where it would not start with the configuration that stands there.
    """
    paths: tuple[Word, ...] = tuple(HostPath(path) for path in files)
    guard = "docker" if unit.removesuffix(".service") in ("docker", "containerd") else ""
    words = ("sh", "-c", _RESTART, "sh", unit, guard)
    return Step(
        id=f"restart:{unit}",
        title=f"restart {unit}",
        observe=_DUE.format(unit=quote(unit), files=command(paths)),
        wanted="current",
        actions=(Run(words, 300, told=f"systemctl restart {unit}"),),
        why=why,
        risk=RESTARTS,
        follows=tuple(follows),
    )


def drop_in(unit: str, text: str, *, why: str = "") -> Step:
    """Return the step for our drop-in of a unit; what else is there stays."""
    full = unit if "." in unit else f"{unit}.service"
    path = f"/etc/systemd/system/{full}.d/50-bringup.conf"
    return text_file(path, text, title=f"write a drop-in for {unit}", why=why)
