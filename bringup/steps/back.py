"""The way back of a step, from what a receipt says of it: what it found, and what it left.

A step that takes something back looks with the eyes of the step that it takes back. Where it sees
neither what we left nor what was there before, somebody changed it since, and it is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ..core.edits import original
from ..core.receipt import Done
from ..core.steps import Action, Run, Write
from ..core.words import HostPath, quote
from .back_command import command_back
from .back_package import hold_back, package_back
from .back_service import module_back, mount_back, restart_back, service_back
from .directory import directory_step, under_a_mount
from .edit import edited_file
from .file import text_file
from .kernel import sysctl_steps
from .login import member_step
from .slurm import drain_step, reservation_name, reserve_step
from .way_back import Back, after, step_back

__all__ = ["Back", "back", "in_order"]


def back(done: Done) -> Back:
    """Return the way back of one step that changed something."""
    kind, _, name = done.id.partition(":")
    make = _KINDS.get(kind)
    if make is None:
        return Back(
            done.id, why_not="it left nothing that lasts, or nothing that can be taken back"
        )
    return make(name, done)


_LATER: Mapping[str, tuple[str, ...]] = {
    "module": ("module",), "package": ("package", "service"), "folder": ("file", "folder"),
    "restart": ("file", "package"),
}  # fmt: skip
"""Kinds whose way back depends on what others of these kinds left behind."""


def in_order(ways: Iterable[Back]) -> tuple[Back, ...]:
    """Return ways back in the order to go them: restarts last, each after those it depends on."""
    every = sorted(ways, key=lambda way: way.id.startswith("restart:"))
    found: list[Back] = []
    for way in every:
        kinds = _LATER.get(way.id.partition(":")[0], ())
        before = [one.id for one in found if one.id.partition(":")[0] in kinds]
        found.append(after(way, *(id_ for id_ in before if _concerns(id_, way.id))))
    return tuple(found)


def _concerns(cause: str, restart: str) -> bool:
    """Tell whether a service reads a file or comes from a package; other kinds always concern."""
    kind, _, unit = restart.partition(":")
    return kind != "restart" or unit in cause


# A folder that is made for nothing but such files goes with the last of them.
_REMOVE_FILE = r"""
rm -f "$1" || exit
d=${1%/*}
while :; do
  case $d in */docker | */cdi | *.service.d | */opt/bringup | */opt/bringup/*) ;; *) exit 0 ;; esac
  rmdir "$d" 2>/dev/null || exit 0
  d=${d%/*}
done
"""


def _file(path: str, done: Done) -> Back:
    with_owner = len(done.wanted.split()) == 4
    probe = edited_file(path, str, title="") if with_owner else text_file(path, "")
    if done.found == "absent":
        act: Action = Run(("sh", "-c", _REMOVE_FILE, "sh", HostPath(path)), told=f"rm {path}")
        return step_back(done, probe, "absent", (act,), f"remove {path}")
    text = None if done.before is None else original(done.found, done.before)
    if text is None:
        return Back(done.id, why_not="its old content was not kept")
    words = done.found.split()
    owner = words[2] if with_owner else ""
    act = Write(HostPath(path), text.encode(), int(words[1], 8), owner)
    return step_back(done, probe, done.found, (act,), f"write {path} as it was", content=text)


_FULL = r"""
[ -z "$(ls -A "$R"{path} 2>/dev/null | head -n 1)" ] || echo "it holds something"
"""


def _folder(path: str, done: Done) -> Back:
    owner = " ".join(done.wanted.split()[2:])
    probe = under_a_mount(replace(directory_step(path, owner=owner), wanted=done.wanted), path)
    if done.found != "absent":
        return Back(done.id, why_not=f"it was there before: {done.found}")
    act = Run(("sh", "-c", 'rmdir "$1" 2>/dev/null || :', "sh", HostPath(path)))
    return step_back(
        done, probe, "absent", (act,), f"remove {path}", unless=_FULL.format(path=quote(path))
    )


def _member(name: str, done: Done) -> Back:
    user, _, group = name.partition(":")
    act = Run(("gpasswd", "-d", user, group))
    return step_back(
        done, member_step(user, group), done.found, (act,), f"take {user} out of {group}"
    )


def _sysctl(key: str, done: Done) -> Back:
    act = Run(("sysctl", "-q", "-w", f"{key}={done.found}"))
    probe = sysctl_steps(key, done.wanted)[1]
    return step_back(done, probe, done.found, (act,), f"set {key} back to {done.found}")


def _drain(node: str, done: Done) -> Back:
    act = Run(("scontrol", "update", f"NodeName={node}", "State=UNDRAIN"), seconds=30)
    title = f"put {node} back into service in Slurm"
    return step_back(done, drain_step(node, ""), done.found, (act,), title)


def _reservation(node: str, done: Done) -> Back:
    act = Run(("scontrol", "delete", f"ReservationName={reservation_name(node)}"), seconds=30)
    return step_back(done, reserve_step(node), done.found, (act,), f"give {node} back to Slurm")


_KINDS: Mapping[str, Callable[[str, Done], Back]] = {
    "file": _file, "folder": _folder, "package": package_back, "hold": hold_back,
    "service": service_back, "restart": restart_back, "module": module_back, "mount": mount_back,
    "command": command_back, "member": _member, "sysctl": _sysctl, "reservation": _reservation,
    "drain": _drain,
}  # fmt: skip
