"""Step kind: a package of the system, from the repositories that the host has.

Nothing is installed that would remove another package or bring a driver along.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.steps import Run, Step
from ..core.words import quote
from . import version_lock
from .whole import WHOLE

LOCK_S = 60
"""Seconds to wait for another package manager to end."""

DRIVERS = (
    "nvidia-driver* nvidia-dkms* nvidia-kernel* nvidia-open* nvidia-headless* cuda-drivers* "
    "linux-modules-nvidia* libnvidia-compute* kmod-nvidia* linux-image* kernel kernel-core"
)

# State, then the packages that an installation would bring, for the plan and for undo.
_APT_OBSERVE = r"""
p={name} v={version} floor={floor}
s=$(dpkg-query -W -f '${{db:Status-Status}} ${{Version}}\n' "$p" 2>/dev/null | head -n 1)
case $s in
"installed "*) ;;
"" | "not-installed "* | "config-files "*)
  came=$(apt-get -s -q install --no-install-recommends "$p${{v:+=$v*}}" 2>/dev/null |
    sed -n 's/^Inst \([^ ]*\).*/\1/p')
  [ -n "$came" ] && printf 'absent\n%s\n' "$came" || echo 'absent, and no package list has it'
  exit 0 ;;
*) echo "broken: $s"; exit 0 ;;
esac
s=${{s#installed }}
case $s in "$v" | "$v"[-+~]*) [ -z "$v" ] || s=$v ;; esac
[ -z "$floor" ] || ! dpkg --compare-versions "$s" ge "$floor" || s="at least $floor"
h=free
[ -z "$(apt-mark showhold "$p" 2>/dev/null)" ] || h=held
echo installed{show}
"""

_APT = r"""
p=$1 want=$2 floor=$3 hold=$4 lock=$5 drivers=$6 where=$7
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 NEEDRESTART_MODE=l LC_ALL=C
fail() { printf '%s\n' "$@" >&2; exit 3; }
apt="apt-get -q -y -o DPkg::Lock::Timeout=$lock -o Dpkg::Options::=--force-confold"
apt="$apt -o Dpkg::Use-Pty=0 -o APT::Get::AllowUnauthenticated=false"
get() { $apt "$@" </dev/null 2>&1; }
has() {
  for one in $(apt-cache madison "$p" 2>/dev/null | awk '{print $3}'); do
    case $one in "$want"*) ;; *) continue ;; esac
    [ -n "$floor" ] && ! dpkg --compare-versions "$one" ge "$floor" || return 0
  done
  return 1
}
busy() {
  case $1 in *"ould not get lock"* | *"nable to acquire the dpkg"*)
    fail "$1" "another package manager is at work, and did not end within $lock s" ;;
  esac
}
busy "$(get check)"
halves=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' |
  awk '/^(half-|unpacked|triggers-)/ {print $2}')
if [ -n "$halves" ] || ls /var/lib/dpkg/updates/* >/dev/null 2>&1; then
  fail "an earlier run of dpkg was interrupted:" $halves "finish it first: dpkg --configure -a"
fi
was=$(apt-mark showhold "$p")
[ -z "$floor" ] || [ -z "$was" ] || fail "$p is held: somebody wants this version" \
  "if you know better: apt-mark unhold $p"
said=
if ! has; then
  said=$(get -qq update) || :
  busy "$said"
  has || fail "$said" "$where" \
    "no repository of this host offers $p${want:+ $want}${floor:+ $floor or later}"
fi
older=${want:+--allow-downgrades}
try() {
  plan=$(apt-get -s -q install --no-install-recommends $older "$p${want:+=$want*}" 2>&1) ||
    fail "$plan" "apt cannot install $p"
  gone=$(printf '%s\n' "$plan" | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ')
  [ -z "$gone" ] || fail "installing $p would remove $gone" "nothing was changed"
  set -f
  for one in $(printf '%s\n' "$plan" | sed -n 's/^Inst \([^ ]*\).*/\1/p'); do
    for kind in $drivers; do
      case $one in $kind) fail "installing $p would bring a driver or kernel: $one" \
        "nothing was changed" ;; esac
    done
  done
  set +f
  set -- install --no-install-recommends $older "$p${want:+=$want*}"
  said=$(get --download-only "$@") || return
  whole sh -c '
    held=$1 apt=$2
    shift 2
    $apt "$@"
    code=$?
    [ -z "$held" ] || apt-mark hold "$held" >/dev/null
    exit "$code"' sh "$was" "$apt" "$@"
}
if [ -n "$was" ]; then
  trap 'apt-mark hold "$p" >/dev/null' EXIT
  trap 'exit 143' HUP INT TERM
  apt-mark unhold "$p" >/dev/null
fi
if ! try; then
  busy "$said"
  case $said in
  *"404 "* | *"Failed to fetch"*)
    get update >/dev/null || :
    try || fail "$said" "apt failed to install $p" ;;
  *) fail "$said" "apt failed to install $p" ;;
  esac
fi
printf '%s\n' "$said" | tail -n 20
[ "$hold" = no ] || apt-mark hold "$p"
"""

# The second line tells undo whose package it is, and what comes along as far as the cache knows.
_DNF_OBSERVE = r"""
p={name} v={version} floor={floor}
if ! s=$(rpm -q --qf '%{{VERSION}}-%{{RELEASE}}\n' "$p" 2>/dev/null | tail -n 1) ||
  ! rpm -q "$p" >/dev/null 2>&1; then
  printf 'absent\ndnf '
  LC_ALL=C dnf -C install --assumeno --setopt=install_weak_deps=False "$p${{v:+-$v}}" 2>/dev/null |
    awk '/^Installing/ {{ on = 1; next }} !/^ / {{ on = 0 }} on {{ printf "%s ", $1 }}'
  exit 0
fi
case $s in "$v" | "$v"[-+~]*) [ -z "$v" ] || s=$v ;; esac
[ -z "$floor" ] || [ "$(printf '%s\n' "$floor" "$s" | sort -V | head -n 1)" != "$floor" ] ||
  s="at least $floor"
h=free
{held}
echo installed{show}
echo dnf
"""

_DNF = r"""
p=$1 want=$2 floor=$3 hold=$4 lock=$5 drivers=$6 where=$7
export LC_ALL=C
fail() { printf '%s\n' "$@" >&2; exit 3; }
if ! rpm -qa >/dev/null 2>&1; then fail "rpm's database cannot be read: rpm --rebuilddb"; fi
keep=
[ "$hold" = no ] || keep=yes
if held "$p"; then
  [ -z "$floor" ] || fail "$p is held: somebody wants this version" \
    "if you know better: dnf versionlock delete $p"
  keep=yes
  trap 'lock "$p" >/dev/null' EXIT
  unlock "$p"
fi
finish() {
  trap - EXIT
  [ -z "$keep" ] || lock "$p" || fail "dnf cannot lock $p at its version"
  exit 0
}
if [ -z "$floor" ] && rpm -q "$p${want:+-$want}" >/dev/null 2>&1; then finish; fi
act=install
[ -z "$floor" ] || ! rpm -q "$p" >/dev/null 2>&1 || act=upgrade
get() {
  dnf "$@" --setopt=install_weak_deps=False --setopt=exit_on_lock=True $act \
    "$p${want:+-$want}" </dev/null 2>&1
}
plan=$(get --assumeno)
case $plan in
*"is locked by another"* | *"Failed to obtain"*"lock"*)
  fail "$plan" "another package manager is at work" ;;
*"Removing"* | *" replacing "*)
  fail "$plan" "installing $p would remove packages" "nothing was changed" ;;
*"filtered out by exclude"*)
  fail "$plan" "dnf is told to leave $p at another version: see dnf versionlock list" ;;
*"No match for argument"* | *"Unable to find a match"*)
  fail "no repository of this host offers $p${want:+ $want}" "$where" ;;
*"Nothing to do"*) fail "no repository of this host offers $p ${floor:-anew}" "$where" ;;
*"Operation aborted"*) ;;
*) fail "$plan" "dnf cannot install $p" ;;
esac
set -f
for one in $(printf '%s\n' "$plan" | sed -n 's/^ \([^ ]*\) .*/\1/p'); do
  for kind in $drivers; do
    case $one in $kind) fail "installing $p would bring a driver or kernel: $one" \
      "nothing was changed" ;; esac
  done
done
set +f
said=$(get -y --downloadonly 2>&1) || fail "$said" "dnf failed to fetch $p"
whole dnf -y --setopt=install_weak_deps=False --setopt=exit_on_lock=True $act "$p${want:+-$want}" ||
  fail "$said" "dnf failed to install $p"
printf '%s\n' "$said" | tail -n 20
finish
"""

_IS_HELD = '! held "$p" || h=held'

_FORMS = {
    "apt": (_APT_OBSERVE, f"{WHOLE}{_APT}"),
    "dnf": (_DNF_OBSERVE, f"{WHOLE}{version_lock.LOOK}{version_lock.ACT}{_DNF}"),
}


def package_step(
    name: str,
    *,
    version: str = "",
    floor: str = "",
    hold: bool = False,
    manager: str = "apt",
    why: str = "",
    risk: str = "safe",
    lock_s: int = LOCK_S,
    where: str = "",
) -> Step:
    """Return the step for an installed package.

    `version` is whole, or the upstream part before the distribution's own (``580.95.05``); "" takes
    any. `floor` is the oldest that will do instead. `hold` keeps upgrades away. `manager` is
    ``apt`` or ``dnf``. `where` says which repository has it, for a host that knows none.
    """
    observe, act = _FORMS[manager]
    show = (' "$s"' if version or floor else "") + (' "$h"' if hold else "")
    flag = "yes" if hold else "no"
    words = ("sh", "-c", act, "sh", name, version, floor, flag, str(lock_s), DRIVERS, where)
    look, held = (version_lock.LOOK, _IS_HELD) if manager == "dnf" and hold else ("", "")
    quoted = {"name": quote(name), "version": quote(version), "floor": quote(floor)}
    exact = f" {version}" if version else f" at least {floor}" if floor else ""
    return Step(
        id=f"package:{name}",
        title=f"install {name}{exact}{' and hold it' if hold else ''}",
        observe=look + observe.format(show=show, held=held, **quoted),
        wanted=f"installed{exact}{' held' if hold else ''}",
        actions=(Run(words, seconds=1800, told=f"{manager} install {name}{exact}"),),
        seconds=20,
        why=why,
        risk=risk,
        keeps=True,
    )


_HOLD = r"""
{{ apt-mark showhold; echo .; }} | awk -v p={name} '$1 == p {{ f = 1 }} END {{ exit !f }}' \
  && echo held || echo free
"""


def hold_step(name: str, *, why: str = "") -> Step:
    """Return the step that keeps an installed package from being upgraded (apt)."""
    return Step(
        id=f"hold:{name}",
        title=f"hold {name}",
        observe=_HOLD.format(name=quote(name)),
        wanted="held",
        actions=(Run(("apt-mark", "hold", name)),),
        why=why,
    )


def locker_step() -> Step:
    """Return the step for what dnf needs to hold a package; dnf 5 has it built in."""
    step = package_step(version_lock.PLUGIN, manager="dnf", where=version_lock.WHERE)
    seen = f"{version_lock.CAN_LOCK}\ncan_lock && {{ echo installed; exit 0; }}\n{step.observe}"
    return replace(step, observe=seen, why="holds of packages are kept by it")


_RELEASE = {"apt": 'apt-mark unhold "$1"', "dnf": f'{version_lock.ACT}unlock "$1"'}


def release(manager: str) -> str:
    """Return the script that lets a package be upgraded again."""
    return _RELEASE[manager]
