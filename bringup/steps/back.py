"""The way back of a step, from what a receipt says of it: what it found, and what it left.

A step that takes something back looks with the eyes of the step that it takes back. Where it sees
neither what we left nor what was there before, somebody changed it since, and it is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..core.edits import original
from ..core.receipt import Done
from ..core.steps import Action, Run, Step, Write
from ..core.words import HostPath
from .directory import directory_step
from .edit import edited_file
from .file import text_file
from .kernel import sysctl_steps
from .login import member_step
from .package import hold_step, package_step
from .service import service_step
from .slurm import reservation_name, reserve_step


@dataclass(frozen=True, slots=True)
class Back:
    """A step back, or the reason why there is none. `left` is the state in which we left it."""

    id: str
    step: Step | None = None
    left: str = ""
    why_not: str = ""


def back(done: Done) -> Back:
    """Return the way back of one step that changed something."""
    kind, _, name = done.id.partition(":")
    make = _KINDS.get(kind)
    if make is None:
        return Back(
            done.id, why_not="it left nothing that lasts, or nothing that can be taken back"
        )
    return make(name, done)


# A folder that is made for nothing but such files goes with the last of them.
_REMOVE_FILE = r"""
rm -f "$1" || exit
case ${1%/*} in */docker | */cdi | *.service.d) rmdir "${1%/*}" 2>/dev/null ;; esac
:
"""


def _file(path: str, done: Done) -> Back:
    with_owner = len(done.wanted.split()) == 4
    probe = edited_file(path, str, title="") if with_owner else text_file(path, "")
    if done.found == "absent":
        act: Action = Run(("sh", "-c", _REMOVE_FILE, "sh", HostPath(path)), told=f"rm {path}")
        return _step(done, probe, "absent", (act,), f"remove {path}")
    text = None if done.before is None else original(done.found, done.before)
    if text is None:
        return Back(done.id, why_not="its old content was not kept")
    words = done.found.split()
    owner = words[2] if with_owner else ""
    act = Write(HostPath(path), text.encode(), int(words[1], 8), owner)
    return _step(done, probe, done.found, (act,), f"write {path} as it was", content=text)


def _folder(path: str, done: Done) -> Back:
    owner = " ".join(done.wanted.split()[2:])
    probe = directory_step(path, owner=owner)
    if done.found != "absent":
        return Back(done.id, why_not=f"it was there before: {done.found}")
    return _step(done, probe, "absent", (Run(("rmdir", HostPath(path))),), f"remove {path}")


_REMOVE = r"""
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C
p=$1
shift
holds=$(apt-mark showhold "$p")
[ -z "$holds" ] || apt-mark unhold "$p" >/dev/null
gone=$(apt-get -s -q purge "$@" | sed -n 's/^Purg \([^ ]*\).*/\1/p; s/^Remv \([^ ]*\).*/\1/p')
for one in $gone; do
  case " $* " in *" $one "*) ;; *) echo "removing $p would remove $one too" >&2; exit 3 ;; esac
done
apt-get -q -y -o DPkg::Lock::Timeout=60 purge "$@"
"""
_OLDER = r"""
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C
apt-mark unhold "$1" >/dev/null
apt-get -q -y -o DPkg::Lock::Timeout=60 --allow-downgrades --no-install-recommends \
  install "$1=$2" || exit
[ "$3" != held ] || apt-mark hold "$1"
"""


def _package(name: str, done: Done) -> Back:
    words = done.wanted.split()
    version = words[1] if len(words) > 1 and words[1] != "held" else ""
    probe = package_step(name, version=version, hold=words[-1] == "held")
    if done.found == "absent":
        came = dict.fromkeys((name, *(done.before or "").split()))
        act = Run(
            ("sh", "-c", _REMOVE, "sh", name, *came), 600, told=f"apt-get purge {' '.join(came)}"
        )
        return _step(done, probe, "absent", (act,), f"remove {' '.join(came)}")
    old = done.found.split()
    if len(old) < 3:
        if done.found == "installed free":
            free = Run(("apt-mark", "unhold", name))
            return _step(done, probe, done.found, (free,), f"release {name}")
        return Back(done.id, why_not=f"its state before was {done.found}")
    words_ = ("sh", "-c", _OLDER, "sh", name, old[1], old[2])
    act = Run(words_, 600, told=f"apt-get install {name}={old[1]}")
    return _step(done, probe, done.found, (act,), f"install {name} {old[1]} again")


def _hold(name: str, done: Done) -> Back:
    act = Run(("apt-mark", "unhold", name))
    return _step(done, hold_step(name), done.found, (act,), f"release {name}")


_SERVICE = r"""
case $2 in *" active") ;; *) systemctl stop "$1" || exit ;; esac
case $2 in enabled*) ;; absent*) ;; *) systemctl disable "$1" || exit ;; esac
"""


def _service(unit: str, done: Done) -> Back:
    probe = service_step(unit)
    if done.found.startswith("absent"):  # its package or file goes next, and must not leave links
        seen = f"{{ {probe.observe}}} | sed 's/^absent/disabled/'"
        off = Run(("systemctl", "disable", "--now", unit), seconds=120)
        return _step(done, replace(probe, observe=seen), "disabled inactive", (off,), f"end {unit}")
    act = Run(
        ("sh", "-c", _SERVICE, "sh", unit, done.found), 120, told=f"systemctl stop, disable {unit}"
    )
    return _step(done, probe, done.found, (act,), f"{unit} back to {done.found}")


def _member(name: str, done: Done) -> Back:
    user, _, group = name.partition(":")
    act = Run(("gpasswd", "-d", user, group))
    return _step(done, member_step(user, group), done.found, (act,), f"take {user} out of {group}")


def _sysctl(key: str, done: Done) -> Back:
    act = Run(("sysctl", "-q", "-w", f"{key}={done.found}"))
    probe = sysctl_steps(key, done.wanted)[1]
    return _step(done, probe, done.found, (act,), f"set {key} back to {done.found}")


def _reservation(node: str, done: Done) -> Back:
    act = Run(("scontrol", "delete", f"ReservationName={reservation_name(node)}"), seconds=30)
    return _step(done, reserve_step(node), done.found, (act,), f"give {node} back to Slurm")


def _step(
    done: Done, probe: Step, wanted: str, actions: tuple[Action, ...], title: str,
    *, content: str | None = None,
) -> Back:  # fmt: skip
    step = Step(
        f"back:{done.id}", title, probe.observe, wanted, actions, seconds=probe.seconds,
        why=f"it was so before: {done.found}", content=content,
    )  # fmt: skip
    return Back(done.id, step, done.wanted)


_KINDS: Mapping[str, Callable[[str, Done], Back]] = {
    "file": _file, "folder": _folder, "package": _package, "hold": _hold, "service": _service,
    "member": _member, "sysctl": _sysctl, "reservation": _reservation,
}  # fmt: skip
