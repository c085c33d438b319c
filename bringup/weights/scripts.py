"""The sh texts that serve files to other hosts and fetch them. Values come as arguments only."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.steps import Run
from ..core.words import HostPath, Word, command
from .folder import PARTS, File

FULL, CUT, OTHER = 70, 71, 72
"""Exit codes of a fetch: cannot write, the source stopped short, other bytes came."""

# A station: the folder of one-off keys on a host, and where it serves an OpenSSH server of its own
# that knows these keys and one command. It ends with its stdin or after SILENCE seconds without a
# beat, and takes the folder along.
_STATION = r"""
exec 3<&0 </dev/null
set -u
umask 077
mkdir -p "$d" && chmod 700 "$d" || exit 1
pid=
clean() {
  trap '' HUP INT TERM
  [ -z "$pid" ] || kill $(cat "/proc/$pid/task/$pid/children") "$pid" 2>/dev/null
  rm -rf "$d"
}
trap clean EXIT
trap 'exit 0' HUP INT TERM
answer() { printf '\n@@%s %s\n@@%s done\n' "$N" "$1" "$N"; }
tries=0
until [ -e "$d/go" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || { answer "no keys came"; exit 1; }
  sleep 0.1
done
try() {
  rm -f "$d/log"
  pam=no
  [ "$(id -u)" != 0 ] || { pam=yes; mkdir -p -m 755 /run/sshd; }
  "$sshd" -D -e -f /dev/null -h "$d/host" -p "$1" -o "ListenAddress=$address" \
    -o ListenAddress=127.0.0.1 -o "AuthorizedKeysFile=$d/allowed" -o StrictModes=no \
    -o PidFile=none -o "UsePAM=$pam" -o PasswordAuthentication=no \
    -o KbdInteractiveAuthentication=no -o PermitRootLogin=prohibit-password \
    -o "ForceCommand=sh $d/give" -o DisableForwarding=yes -o PermitTTY=no -o UseDNS=no \
    -o MaxStartups=200 -o MaxSessions=1 -o LoginGraceTime=20 -o ClientAliveInterval=15 \
    -o ClientAliveCountMax=4 -o Compression=no >/dev/null 2>"$d/log" &
  pid=$!
  i=0
  while [ "$i" -lt 100 ] && kill -0 "$pid" 2>/dev/null; do
    grep -q 'listening on' "$d/log" && return 0
    i=$((i + 1))
    sleep 0.1
  done
  kill "$pid" 2>/dev/null
  pid=
  return 1
}
if [ "$serves" = yes ]; then
  sshd=$(PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v sshd) || sshd=
  [ -n "$sshd" ] || { answer "no sshd"; exit 1; }
  i=0
  for n in 1 2 3 4 5 6 7 8; do
    p=$port
    [ "$p" != 0 ] || p=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
    if try "$p"; then
      grep 'listening on' "$d/log" | grep -qv 'on 127.0.0.1 port' && way=direct || way=loopback
      answer "port $p $way $(id -un)"
      break
    fi
    [ "$n" != 8 ] || { answer "sshd: $(tail -n 1 "$d/log")"; exit 1; }
  done
else
  answer "port 0 none $(id -un)"
fi
limit="timeout $silence"
command -v timeout >/dev/null 2>&1 || limit=
while :; do
  $limit sh -c 'read -r beat' <&3 >/dev/null 2>&1 &
  wait $! || exit 0
done
"""

MARK = "@@bringup gives"
"""The line before a file's bytes: what a login's start-up files print comes before it."""

# What the server of a station runs, whatever it is asked: one listed file from an offset on.
GIVE = r"""
set -- $SSH_ORIGINAL_COMMAND
case $1$2 in *[!0-9]* | '') echo "bringup: no such file" >&2; exit 64 ;; esac
f=$(sed -n "$1p" "${0%/*}/files")
[ -f "$f" ] || { echo "bringup: $f is gone" >&2; exit 66; }
echo __MARK__
exec tail -c "+$(($2 + 1))" -- "$f"
""".replace("__MARK__", MARK)

# Where a host was rebooted, what its last seconds wrote may be zeros: back to what was synced. The
# lock is inherited by all that write: a fetch whose line dropped unseen is waited for.
_FETCH = r"""
d=$1 name=$2 key=$3 size=$4 sample=$5 sum=$6 rate=$7
shift 7
export LC_ALL=C
p=$d/__PARTS__ f=$d/__PARTS__/$key.part
fail() { c=$1; shift; echo "$*" >&2; exit "$c"; }
mkdir -p "$p" || exit __FULL__
exec 9>"$p/$key.lock" || exit __FULL__
if command -v flock >/dev/null 2>&1; then
  flock -w 45 9 || fail __CUT__ "an earlier copy of it is still being written"
fi
boot=; { read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
was=; { read -r was mark <"$p/$key.at"; } 2>/dev/null
: >>"$f" || exit __FULL__
at=$(stat -c %s "$f")
if [ -n "$was" ] && [ "$was" != "$boot" ] && [ "$at" -gt "$mark" ]; then at=$mark; fi
[ "$at" -le "$size" ] || at=0
[ "$at" = "$(stat -c %s "$f")" ] || dd if=/dev/null of="$f" bs=1 seek="$at" 2>/dev/null
echo "$boot $at" >"$p/$key.at" || exit __FULL__
echo "at $at"
tell() {
  n=0
  while sleep 1 >/dev/null 2>&1; do
    s=$(stat -c %s "$f" 2>/dev/null) || exit 0
    echo "at $s"
    n=$((n + 1))
    [ $((n % 15)) -ne 0 ] || { sync "$f" && echo "$boot $s" >"$p/$key.at"; } 2>/dev/null
  done
}
slowly() {
  c=$(((rate / 4 + 65535) / 65536))
  want=$((c * 6553600 / rate))
  old=$at
  while :; do
    read -r up rest </proc/uptime
    dd bs=65536 count="$c" iflag=fullblock 2>/dev/null >>"$f" || return 1
    new=$(stat -c %s "$f")
    [ "$new" != "$old" ] || return 0
    old=$new
    read -r now rest </proc/uptime
    left=$((want - (${now%.*} - ${up%.*}) * 100 - 1${now#*.} + 1${up#*.}))
    [ "$left" -le 0 ] || sleep "$((left / 100)).$(printf %02d $((left % 100)))"
  done
}
keep() { if [ "$rate" -gt 0 ]; then slowly; else cat >>"$f"; fi; }
if [ "$at" -lt "$size" ]; then
  tell &
  teller=$!
  codes=$({ { "$@" "$at" 4>&- && echo given >&4 || echo cut >&4; } | { keep 4>&- || echo full >&4; }; } 4>&1 >&2)
  kill "$teller" 2>/dev/null
  case $codes in *full*) fail __FULL__ "cannot write $d: $(df -Pk "$d" | tail -n 1)" ;; esac
fi
n=$(stat -c %s "$f")
[ "$n" -le "$size" ] || { rm -f "$f"; fail __OTHER__ "$n bytes came, not $size"; }
[ "$n" = "$size" ] || fail __CUT__ "the source stopped at $n of $size bytes"
have=
if [ -n "$sample" ]; then
  have=$({ head -c 262144 -- "$f"; dd if="$f" bs=65536 skip=$((size / 131072)) count=1 2>/dev/null
    tail -c 65536 -- "$f"; } | sha256sum)
  [ "${have%% *}" = "$sample" ] || { rm -f "$f"; fail __OTHER__ "other bytes came"; }
fi
if [ -n "$sum" ]; then
  have=$(sha256sum <"$f")
  [ "${have%% *}" = "$sum" ] || { rm -f "$f"; fail __OTHER__ "other bytes came: SHA-256 ${have%% *}"; }
fi
case $name in */*) mkdir -p "$d/${name%/*}" || exit __FULL__ ;; esac
sync "$f" 2>/dev/null
[ ! -d "$d/$name" ] || fail __FULL__ "a folder stands in the place of $d/$name"
mv -f "$f" "$d/$name" || exit __FULL__
rm -f "$p/$key.at" "$p/$key.lock"
echo "at $size"
exit 0
"""  # noqa: E501 - words of the shell

_CIPHERS = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr"

# Unfinished files of another content are of no more use.
_FORGET = r"""
p=$1/__PARTS__
shift
for k; do rm -f "$p/$k.part" "$p/$k.at" "$p/$k.lock"; done
for f in "$p"/*.part; do [ -e "$f" ] || rm -rf "$p"; done
:
"""


def station_script(
    folder: HostPath, *, root_line: str, nonce: str, address: str, serves: bool, port: int,
    silence_s: int,
) -> str:  # fmt: skip
    """Return the script that holds a station: see `_STATION`.

    Between marks of the nonce it answers ``port N WAY USER``, or why there is none.
    """
    values: dict[str, Word] = {
        "d": folder, "N": nonce, "address": address or "127.0.0.1",
        "serves": "yes" if serves else "no", "port": str(port), "silence": str(silence_s),
    }  # fmt: skip
    sets = "".join(f"{name}={command([value])}\n" for name, value in values.items())
    return f"{root_line}{sets}{_STATION}"


def fetch(folder: str, file: File, give: Iterable[Word], *, rate: int = 0, sum_: str = "") -> Run:
    """Return the command that fetches one file; `give` are words that print it from an offset.

    It goes on where an unfinished part ends, says ``at BYTES`` each second, and moves the file to
    its place once size, sample and sum are right. `rate` is in bytes a second, 0 for no limit.
    Exit codes: `FULL`, `CUT`, `OTHER`.
    """
    words: tuple[Word, ...] = (
        "sh", "-c", _filled(_FETCH), "sh", HostPath(folder), file.name, file.key, str(file.size),
        file.sample, sum_ or file.sum, str(rate), *give,
    )  # fmt: skip
    return Run(words, seconds=7 * 86400, told=f"fetch {folder}/{file.name}")


def forget(folder: str, keys: Iterable[str]) -> Run:
    """Return the command that removes unfinished files."""
    return Run(("sh", "-c", _filled(_FORGET), "sh", HostPath(folder), *keys), 60)


def _filled(text: str) -> str:
    for word, value in (("__PARTS__", PARTS), ("__FULL__", str(FULL)), ("__CUT__", str(CUT)),
                        ("__OTHER__", str(OTHER))):  # fmt: skip
        text = text.replace(word, value)
    return text


def from_station(
    folder: HostPath, *, user: str, address: str, port: int, number: int
) -> tuple[Word, ...]:
    """Return the words that print a station's file by its number, from the offset that follows."""
    return ("sh", "-c", _DIAL, "sh", folder, user, address, str(port), str(number))


# `read` takes single bytes from a pipe, so that cat begins right behind the line.
_DIAL = rf"""
ssh -F /dev/null -T -l "$2" -p "$4" -i "$1/key" -o IdentitiesOnly=yes \
  -o IdentityAgent=none -o BatchMode=yes -o "UserKnownHostsFile=$1/known" \
  -o GlobalKnownHostsFile=/dev/null -o HostKeyAlias=station -o StrictHostKeyChecking=yes \
  -o LogLevel=ERROR -o ConnectTimeout=6 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 \
  -o "Ciphers={_CIPHERS}" -o Compression=no -o ControlPath=none "$3" "$5 $6" |
  {{ while IFS= read -r line; do [ "$line" != "{MARK}" ] || exec cat; done; exit 1; }}
"""


def from_mount(folder: str, name: str) -> tuple[Word, ...]:
    """Return the words that print a file that the host itself sees, from an offset."""
    text = 'exec tail -c "+$(($2 + 1))" -- "$1"'
    return ("sh", "-c", text, "sh", HostPath(f"{folder}/{name}"))


def from_stdin(at: int) -> tuple[Word, ...]:
    """Return the words that print what comes on stdin, which begins at an offset."""
    return ("sh", "-c", '[ "$1" = "$2" ] && exec cat', "sh", str(at))
