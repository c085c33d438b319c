"""The way back of packages: those that came along go with theirs, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

from ..core.receipt import Done
from ..core.steps import Run, Step
from ..core.words import command
from . import version_lock
from .package import hold_step, package_step, release
from .way_back import IN_USE, Back, step_back
from .whole import WHOLE

# Prints what a removal would take besides what it is told to remove.
_MORE = {
    "apt": r"""
more() {
  for one in $(LC_ALL=C apt-get -s -q purge "$@" 2>/dev/null |
    sed -n 's/^Purg \([^ ]*\).*/\1/p; s/^Remv \([^ ]*\).*/\1/p'); do
    case " $* " in *" $one "*) ;; *) printf '%s ' "$one" ;; esac
  done
}
""",
    "dnf": r"""
more() {
  for one in $(LC_ALL=C rpm -e --test "$@" 2>&1 | sed -n 's/.*needed by (installed) //p' | sort -u)
  do printf '%s ' "$one"; done
}
""",
}
_STAYS = r"""
{functions}
set -- {came}
why=$(in_use "$1")
[ -n "$why" ] || {{ why=$(more "$@"); why=${{why:+its removal would take $why}}; }}
echo "$why"
"""
_REMOVE = {
    "apt": r"""
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C
[ -z "$(more "$@")" ] || { echo "$1 stays: its removal would take $(more "$@")"; exit 0; }
holds=$(apt-mark showhold "$1")
[ -z "$holds" ] || apt-mark unhold "$1" >/dev/null
whole apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Use-Pty=0 purge "$@" || code=$?
printf '%s\n' "$said"
exit "$code"
""",
    "dnf": version_lock.ACT
    + r"""
export LC_ALL=C
[ -z "$(more "$@")" ] || { echo "$1 stays: its removal would take $(more "$@")"; exit 0; }
unlock "$1"
whole dnf remove -y --noautoremove "$@" || code=$?
printf '%s\n' "$said"
exit "$code"
""",
}
_OLDER = {
    "apt": r"""
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C
apt-mark unhold "$1" >/dev/null
whole apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Use-Pty=0 --allow-downgrades \
  --no-install-recommends install "$1=$2" || { printf '%s\n' "$said"; exit 1; }
[ "$3" != held ] || apt-mark hold "$1"
""",
    "dnf": version_lock.ACT
    + r"""
export LC_ALL=C
unlock "$1"
whole dnf downgrade -y --setopt=install_weak_deps=False "$1-$2" ||
  { printf '%s\n' "$said"; exit 1; }
[ "$3" != held ] || lock "$1"
""",
}


def package_back(name: str, done: Done) -> Back:
    """Return the way back of a package: away, to its older version, or free of our hold."""
    manager = "dnf" if (done.before or "").startswith("dnf") else "apt"
    probe = _eyes(name, done, manager)
    if done.found.startswith("absent"):
        return _removed(name, done, manager)
    old = done.found.split()
    if done.found == "installed free":
        free = Run(("sh", "-c", release(manager), "sh", name), told=f"release {name}")
        return step_back(done, probe, done.found, (free,), f"release {name}")
    if len(old) < 2:
        return Back(done.id, why_not=f"its state before was {done.found}")
    words = ("sh", "-c", f"{WHOLE}{_OLDER[manager]}", "sh", name, old[1], old[-1])
    act = Run(words, 600, told=f"{manager} install {name} {old[1]}")
    guard = f"{IN_USE}\nin_use {name}"
    return step_back(
        done, probe, done.found, (act,), f"install {name} {old[1]} again", unless=guard
    )


def _eyes(name: str, done: Done, manager: str) -> Step:
    """Return the step that brought a package about, from the state that it came to."""
    words = done.wanted.split()
    hold = words[-1] == "held"
    rest = words[1 : len(words) - hold]
    if rest[:2] == ["at", "least"]:
        return package_step(name, floor=rest[2], hold=hold, manager=manager)
    version = rest[0] if rest else ""
    return package_step(name, version=version, hold=hold, manager=manager)


def _removed(name: str, done: Done, manager: str) -> Back:
    along = [word for word in (done.before or "").split() if word not in ("dnf", "apt")]
    came = tuple(dict.fromkeys((name, *along)))
    script = f"{WHOLE}{_MORE[manager]}{_REMOVE[manager]}"
    act = Run(("sh", "-c", script, "sh", *came), 600, told=f"{manager} remove {' '.join(came)}")
    probe = _eyes(name, done, manager)
    guard = _STAYS.format(functions=f"{IN_USE}{_MORE[manager]}", came=command(came))
    seen = f"{{ {probe.observe}\n}} | head -n 1 | sed 's/^absent.*/absent/'"
    return step_back(
        done, replace(probe, observe=seen), "absent", (act,), f"remove {' '.join(came)}",
        unless=guard,
    )  # fmt: skip


def hold_back(name: str, done: Done) -> Back:
    """Return the way back of a hold."""
    act = Run(("apt-mark", "unhold", name))
    return step_back(done, hold_step(name), done.found, (act,), f"release {name}")
