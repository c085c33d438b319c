"""The way back of services, modules and mounts: what others need stays as it is."""

from __future__ import annotations

from dataclasses import replace

from ..core.receipt import Done
from ..core.steps import Run, Step
from ..core.words import HostPath, quote
from .kernel import module_steps
from .service import service_step
from .way_back import IN_USE, Back, step_back

_SERVICE = r"""
case $2 in *" active") ;; *) systemctl stop "$1" || exit ;; esac
case $2 in enabled*) ;; absent*) ;; *) systemctl disable "$1" || exit ;; esac
"""


def service_back(unit: str, done: Done) -> Back:
    """Return the way back of a service to the state it had; one that others need goes on."""
    probe, guard = service_step(unit), f"{IN_USE}\nin_use {quote(unit)}"
    if done.found.startswith("absent"):  # its package or file goes next, and must not leave links
        seen = f"{{ {probe.observe}}} | sed 's/^absent/disabled/'"
        off = Run(("systemctl", "disable", "--now", unit), seconds=120)
        return step_back(
            done, replace(probe, observe=seen), "disabled inactive", (off,), f"end {unit}",
            unless=guard,
        )  # fmt: skip
    words = ("sh", "-c", _SERVICE, "sh", unit, done.found)
    act = Run(words, 120, told=f"systemctl stop, disable {unit}")
    return step_back(done, probe, done.found, (act,), f"{unit} back to {done.found}", unless=guard)


# Nothing to do by itself: it follows the files and packages that the service reads.
_CURRENT = r"""
why=$(in_use {unit})
[ -n "$why" ] && echo "kept: it keeps what it read until it restarts: $why" || echo current
"""
_AGAIN = r"""
systemctl -q is-active "$1" || exit 0
[ -z "$(in_use "$1")" ] || { echo "$1 is not restarted: $(in_use "$1")"; exit 0; }
systemctl daemon-reload && systemctl restart "$1" && exit 0
systemctl status --no-pager -n 15 "$1" >&2
exit 1
"""


def restart_back(unit: str, done: Done) -> Back:
    """Return the restart by which a service forgets what it read; it follows the files' way back.

    It is not restarted where that would end what others run.
    """
    act = Run(("sh", "-c", IN_USE + _AGAIN, "sh", unit), 300, told=f"systemctl restart {unit}")
    probe = Step(done.id, "", IN_USE + _CURRENT.format(unit=quote(unit)), "current", ())
    return step_back(done, probe, "current", (act,), f"restart {unit}")


_IN_KERNEL = r"""
r=0; { read -r r </sys/module/{name}/refcnt; } 2>/dev/null
[ "$r" = 0 ] || echo "the module is in use"
"""
_UNLOAD = r"""
r=0; { read -r r <"/sys/module/$2/refcnt"; } 2>/dev/null
[ "$r" = 0 ] || { echo "$1 stays: it is in use"; exit 0; }
exec modprobe -r "$1"
"""


def module_back(name: str, done: Done) -> Back:
    """Return the way back of a module that was loaded; one in use stays."""
    folder = name.replace("-", "_")
    act = Run(("sh", "-c", _UNLOAD, "sh", name, folder), told=f"modprobe -r {name}")
    unless = _IN_KERNEL.replace("{name}", folder)
    probe = module_steps(name)[1]
    return step_back(done, probe, "not loaded", (act,), f"unload {name}", unless=unless)


_MOUNTED = r"""
awk -v at={at} '$2 == at { found = "mounted " $1 " " $3 }
  END { print found ? found : "not mounted" }' "$R/proc/self/mounts"
"""
_BUSY = r"""
! ls -l /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd 2>/dev/null |
  grep -qE -- "-> {at}(/|\$)" || echo "somebody works in it"
"""


def mount_back(at: str, done: Done) -> Back:
    """Return the way back of a mount that was not there; one in which somebody works stays."""
    if done.found != "not mounted":
        return Back(done.id, why_not=f"it was there before: {done.found}")
    probe = Step(done.id, "", _MOUNTED.replace("{at}", quote(at)), done.wanted, ())
    act = Run(("umount", HostPath(at)), seconds=60)
    return step_back(
        done, probe, "not mounted", (act,), f"take off {at}", unless=_BUSY.replace("{at}", at)
    )
