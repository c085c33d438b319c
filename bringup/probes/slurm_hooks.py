"""Hooks of Slurm: prolog, epilog and health programs, and the lines that could end a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..core.facts import Probe
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from .text import answered, first, rows, told, whole


class Danger(NamedTuple):
    """A line of a hook that may hurt a worker which Slurm does not know."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SlurmHooks:
    """Prolog, epilog and health programs: which there are, and lines in them to look at.

    `unread` are hooks that this login may not read.
    """

    scripts: tuple[str, ...]
    dangers: tuple[Danger, ...] = ()
    unread: tuple[str, ...] = ()
    health: str = ""


# slurm.conf names hooks by path, glob, or several times; a site may also link folders of parts.
HOOKS = r"""
c=
for f in /etc/slurm/slurm.conf /etc/slurm-llnl/slurm.conf /usr/local/etc/slurm.conf \
  /run/slurm/conf/slurm.conf /var/spool/slurmd/conf-cache/slurm.conf; do
  [ -e "$R$f" ] && { c=$f; break; }
done
if [ -z "$c" ]; then
  [ -d "$R/etc" ] || { echo "no folder /etc"; exit 4; }
  echo "absent: no slurm.conf"; exit 3
fi
[ -r "$R$c" ] || { echo "permission denied: $c"; exit 4; }
set -f
value='[[:space:]]*\([^#[:space:]]*\).*'
p=$(cat "$R$c" "$R${c%/*}"/*.conf 2>/dev/null | sed -n \
  -e 's/^[[:space:]]*[Hh]ealth[Cc]heck[Pp]rogram[[:space:]]*='"$value"'/H\1/p' \
  -e 's/^[[:space:]]*[Pp]rolog[[:space:]]*='"$value"'/\1/p' \
  -e 's/^[[:space:]]*[Ee]pilog[[:space:]]*='"$value"'/\1/p' |
  tr ',' '\n' | sort -u)
set +f
read_one() {
  [ -f "$R$1" ] || return 1
  printf 'script\t%s\n' "$1"
  [ -r "$R$1" ] || { printf 'unread\t%s\n' "$1"; return 1; }
  grep -nE "$WORDS" "$R$1" | grep -vE '^[0-9]+:[[:space:]]*#' | head -n 20 | cut -c 1-240 |
    while IFS= read -r l; do printf 'danger\t%s\t%s\t%s\n' "$1" "${l%%:*}" "${l#*:}"; done
}
scan() {
  read_one "$1" || return 0
  sed 's/#.*//' "$R$1" | tr -c 'A-Za-z0-9_./-' '\n' | grep '^/.*/' | sort -u | head -n 40 |
    while IFS= read -r g; do
      case $g in "$1" | /bin/* | /usr/bin/* | /sbin/* | /usr/sbin/* | /dev/* | /proc/* | /sys/*)
        continue ;;
      esac
      l=; { [ -f "$R$g" ] && IFS= read -r l <"$R$g"; } 2>/dev/null
      case $l in '#!'*) read_one "$g" || : ;; esac
    done
}
WORDS='kill|pmon|query-compute-apps|docker|podman|nerdctl|crictl|drop_caches|/dev/shm|gpu-reset'
WORDS="$WORDS|nvidia-smi.* (-r|-mig|-pm)|governor|cpupower|fuser .*-[a-z]*k"
WORDS="$WORDS|terminate-(user|session)|cgdelete|cgroup.*rmdir|rmdir.*cgroup|rmmod|modprobe .*-r"
WORDS="$WORDS|ipcrm|reboot|shutdown|systemctl .*(stop|restart).*(containerd|nvidia)"
for q in $p; do
  case $q in H*) q=${q#H}; printf 'health\t%s\n' "$q" ;; esac
  case $q in /*) ;; *) q=${c%/*}/$q ;; esac
  for f in "$R"$q; do
    f=${f#"$R"}
    scan "$f"
    for g in "$R${f%/*}/$(printf '%s' "${f##*/}" | sed 's/\..*//')".d/* "$R$f"/*; do
      scan "${g#"$R"}"
    done
  done
done
for g in "$R${c%/*}"/prolog.d/* "$R${c%/*}"/epilog.d/*; do scan "${g#"$R"}"; done
printf 'end\tof hooks\n'
"""


def parse_hooks(section: Section) -> Reading[SlurmHooks]:
    """Return the hooks and the lines in them that name what could hurt a worker."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    if first(found, "end") != "of hooks":
        return Unknown("the list of hooks was cut off", section.first)
    dangers = (
        Danger(file, int(line), text)
        for key, file, line, text in (r for r in rows(answer.value) if len(r) == 4)
        if key == "danger" and whole(line) is not None
    )
    hooks = SlurmHooks(
        tuple(dict.fromkeys(found.get("script", ()))),
        tuple(dict.fromkeys(dangers)),
        tuple(dict.fromkeys(found.get("unread", ()))),
        first(found, "health"),
    )
    return Known(hooks, ", ".join(hooks.scripts) or "slurm.conf names no hooks")


PROBE = Probe("slurm_hooks", SlurmHooks, HOOKS, parse_hooks)
