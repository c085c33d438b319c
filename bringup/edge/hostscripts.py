"""The sh texts that carry an action to a host: the same over SSH and on the controller itself.

Pure: builds text and words, runs nothing. Every text is POSIX sh (dash, bash and busybox alike);
values reach it as quoted words only.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ..core.steps import Push, Run
from ..core.words import command

KILL_AFTER_S = 5
"""Seconds between SIGTERM and SIGKILL for a command that ran out of time or of its controller."""

_BOUNDED = rf"""
limit="timeout -k {KILL_AFTER_S} $1"
command -v timeout >/dev/null 2>&1 || limit=
$limit sh -c "$4" bringup "$2" "$3"
code=$?
[ "$code" != 124 ] || echo "stopped: ran longer than $1 s" >&2
exit "$code"
"""
"""Run $3 for at most $1 seconds, by way of $4, feeding it the first $2 bytes of stdin."""

# `timeout` leads a process group of its own, so `kill 0` ends the command and nothing else; the
# number of a group is not given to a new process while a member (the watcher) lives.
_WATCHED = r"""
exec 3<&0 </dev/null
watch() {
  exec >/dev/null 2>&1
  while read -r line <&3; do :; done
  read -r pid name state parent group rest </proc/self/stat
  [ ! -e "/proc/$group" ] || kill -TERM 0
}
if [ "$1" = 0 ]; then
  watch &
  exec sh -c "$2" bringup 3<&-
fi
{
  head -c "$1" <&3
  watch &
} | exec sh -c "$2" bringup 3<&-
"""
"""Run $2 with $1 bytes of stdin as its own; end it when stdin ends, for then nobody listens.

It comes through `timeout` as stdin, since the watcher that busybox's leaves behind for up to a
second keeps every other descriptor open, and sshd would wait for it.
"""

_FROM_STDIN = 'eval "$(dd bs="$1" count=1 iflag=fullblock 2>/dev/null || head -c "$1")"'
"""Take the program itself from the first $1 bytes of stdin, and leave the rest there."""


@dataclass(frozen=True, slots=True)
class Shipment:
    """What goes out for one action: the words to execute, and bytes to send before its input."""

    words: tuple[str, ...]
    prefix: bytes = b""


def bounded(script: str, *, seconds: float, input_bytes: int = 0, sudo: bool = False) -> Shipment:
    """Return how to run a script under a limit, ended when the line that brought it ends."""
    words = (_whole(seconds), str(input_bytes), script, _WATCHED)
    if not sudo:
        return Shipment(("sh", "-c", _BOUNDED, "bringup", *words))
    return _as_root(f"set -- {command(words)}\n{_BOUNDED}".encode())


def unbounded(script: str, *, sudo: bool = False) -> Shipment:
    """Return how to run a script that ends by itself when its stdin does (the lock's holder)."""
    return _as_root(script.encode()) if sudo else Shipment(("sh", "-c", script, "bringup"))


def _as_root(program: bytes) -> Shipment:
    """Under sudo a program travels on stdin, since sudo logs every word of its command line."""
    size = str(len(program))
    return Shipment(("sudo", "-n", "--", "sh", "-c", _FROM_STDIN, "bringup", size), program)


def _whole(seconds: float) -> str:
    """`timeout` of busybox takes whole seconds only, and 0 means no limit."""
    return str(max(1, round(seconds)))


def root_line(root: str) -> str:
    """Return the line that sets ``$R``, the prefix of every host path."""
    return f"R={shlex.quote('' if root == '/' else root.rstrip('/'))}\n"


def run_script(action: Run, *, root: str) -> str:
    """Return the script of one command. `exec`, so that its exit code and signals are its own."""
    return f"{root_line(root)}exec {command(action.words)}\n"


FILES = r"""
set -u
export LC_ALL=C
umask 022
fail() { printf 'bringup: %s: %s\n' "$1" "$2" >&2; exit 1; }
folder() { d=${1%/*}; d=${d:-/}; }
# Make the folder of a target, unless links would lead out of the root.
enter() {
  folder "$R$1"
  near=$d
  while [ ! -d "$near" ]; do near=${near%/*}; near=${near:-/}; done
  if [ -n "$R" ]; then
    top=$(cd "$R" && pwd -P) || fail folder "$1"
    case $(cd "$near" && pwd -P)/ in
    "$top"/*) ;;
    *) fail outside "$1" ;;
    esac
  fi
  [ -d "$d" ] || mkdir -p "$d" || fail folder "$1"
}
# A signal ends the work and not the clearing up. `timeout` sends it twice, and the shell itself
# would die of SIGPIPE while it reports a killed command to nobody.
carry_out() {
  trap '' PIPE
  trap : HUP INT TERM
  (work "$@")
  code=$?
  trap '' HUP INT TERM
  undo "$@"
  [ "$code" = 0 ] || exit "$code"
  trap - HUP INT TERM PIPE
}
"""
"""Helpers of the scripts that change files: R is the root's prefix, N a nonce of this run."""

_PUSH = r"""
target="$R$1"
new="$target.bringup-new"
old="$target.bringup-old"
archive="$target.bringup-archive"
[ ! -L "$target" ] || fail link "$1 -> $(readlink "$target")"
[ ! -e "$target" ] || [ -d "$target" ] || fail special "$1"
enter "$1"
# A run that was killed between the two renames left the old folder aside.
if [ ! -e "$target" ] && [ -d "$old" ]; then mv "$old" "$target" || fail move "$1"; fi
rm -rf "$new" "$old" "$archive" || fail stage "$1"
work() {
  (umask 077 && cat >"$archive") || fail unpack "$1"
  printf '%s  %s\n' "$2" "$archive" | sha256sum -c >/dev/null || fail sum "$1"
  mkdir "$new" || fail stage "$1"
  $3 <"$archive" | tar -xof - -C "$new" || fail unpack "$1"
  rm -f "$archive"
  sync -f "$new" 2>/dev/null || :
  if [ ! -e "$target" ]; then
    mv "$new" "$target" || fail move "$1"
  elif ! mv --exchange --no-copy -T "$new" "$target" 2>/dev/null; then
    mv "$target" "$old" || fail move "$1"
    mv "$new" "$target" || fail move "$1"
  fi
}
undo() {
  [ -e "$target" ] || [ ! -d "$old" ] || mv "$old" "$target"
  rm -rf "$new" "$old" "$archive"
}
carry_out "$@"
"""

# `ln` is what decides: it makes the holder's file whole or not at all. A dead holder is known by
# its number and birth; where the numbers of another PID namespace say nothing, it counts as alive.
_LOCK = r"""
exec 3<&0 </dev/null
lock="$R/run/lock/bringup"
[ -d "$R/run/lock" ] || lock="$R/tmp/bringup.lock"
# Sets `birth`: when a process began, "" for one that is gone.
born() {
  birth=
  read -r line <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  [ "$1" = Z ] || birth=${20}
} 2>/dev/null
space=$(readlink /proc/self/ns/pid)
alive() {
  set -- $1
  [ "$3" = "$space" ] || return 0
  born "$1"
  [ "$birth" = "$2" ]
}
write() {
  [ -d "$lock" ] || mkdir -p "$lock" || return
  printf '%s\n%s\n%s\n' "$me" "$now" "$1" >"$lock/.$N"
} 2>/dev/null
release() {
  holder=
  read -r holder <"$lock/holder"
  if [ "$holder" = "$me" ]; then rm -f "$lock/holder" "$lock/.$N"; else rm -f "$lock/.$N"; fi
  rmdir "$lock"
} 2>/dev/null
answer() { printf '\n@@%s %s %s\n%s\n@@%s done\n' "$N" "$1" "$lock" "$2" "$N"; }
busy() {
  rm -f "$lock/.$N" 2>/dev/null
  answer busy "$1"
  exit 0
}
born $$
me="$$ $birth $space"
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
if ! write "$1"; then
  [ ! -e "$lock/holder" ] || busy "$(cat "$lock/holder")"
  lock="$R/tmp/bringup.lock"
fi
tries=0
until { [ -e "$lock/.$N" ] || write "$1"; } && ln "$lock/.$N" "$lock/holder" 2>/dev/null; do
  tries=$((tries + 1))
  [ "$tries" -lt 20 ] || { answer none ''; exit 1; }
  found=$(cat "$lock/holder" 2>/dev/null) || continue
  if alive "$found"; then busy "$found"; fi
  mv "$lock/holder" "$lock/.$N.stale" 2>/dev/null || continue
  [ "$(cat "$lock/.$N.stale")" = "$found" ] || ln "$lock/.$N.stale" "$lock/holder"
  rm -f "$lock/.$N.stale"
done
trap release EXIT
trap 'exit 0' HUP INT TERM
answer held ''
limit="timeout $2"
command -v timeout >/dev/null 2>&1 || limit=
while :; do
  $limit sh -c 'read -r beat' <&3 3<&- >/dev/null 2>&1 &
  wait $! || exit 0
done
"""


def push_script(action: Push, *, root: str, unpack: str) -> str:
    """Return the script that takes an archive on stdin; `unpack` makes a plain tar of it."""
    words = (action.path.path, action.sha256, unpack)
    return f"{root_line(root)}set -- {command(words)}\n{FILES}{_PUSH}"


def lock_script(details: str, *, root: str, nonce: str, silence_s: int) -> str:
    """Return the script that holds the host's lock until its stdin ends or falls silent.

    Between marks of the nonce it answers ``held FOLDER``, ``busy FOLDER`` (then the holder's
    lines: number of the process, since when, details) or ``none FOLDER`` where there can be none.
    """
    words = (" ".join(details.split()), str(silence_s))
    return f"{root_line(root)}N={nonce}\nset -- {command(words)}\n{_LOCK}"
