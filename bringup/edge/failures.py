"""What a failed write, push or lock on a host means, and what to do about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.errors import CommandFailed, LockHeld, StalePlan, ToolError
from ..core.remote import Result
from ..core.steps import Push, Write

_MARK = re.compile(r"^bringup: (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why, as the end of a sentence, and the next thing to do. `{path}` is the target."""

    why: str
    remedy: str


_BY_TEXT: dict[str, Cause] = {
    "No space left on device": Cause(
        "the disk is full", "free space there (df -h {folder}; df -i {folder}), then run again"
    ),
    "Disk quota exceeded": Cause(
        "the quota is used up", "raise the quota or free space, then run again"
    ),
    "Read-only file system": Cause(
        "the file system is read-only",
        "see dmesg for disk errors, remount it writable, or choose another folder",
    ),
    "Permission denied": Cause(
        "the login may not write there",
        "set sudo: true for this host in the inventory, or log in as a user who may",
    ),
    "Operation not permitted": Cause(
        "the login may not do that",
        "set sudo: true for this host in the inventory; see lsattr for an immutable file",
    ),
    "Text file busy": Cause("it is being executed", "stop what runs it, then run again"),
    "Device or resource busy": Cause(
        "it is a mount point", "unmount it, or choose a folder below it"
    ),
}

_BY_KIND: dict[str, Cause] = {
    "link": Cause(
        "it is a symbolic link", "name the file it points to instead, or remove the link"
    ),
    "special": Cause(
        "something else stands in its place", "see ls -ld {path}; move it away, then run again"
    ),
    "outside": Cause(
        "a link leads out of the host's root: folder", "see ls -l on the folders of {path}"
    ),
    "folder": Cause(
        "its folder cannot be made", "see ls -ld on the folders of {path}: one may be a file"
    ),
    "owner": Cause(
        "no such user or group on the host", "create it first (id NAME on the host shows it)"
    ),
    "sum": Cause(
        "it arrived damaged: the SHA-256 differs", "run again; if it stays, check the archive"
    ),
    "unpack": Cause(
        "it could not be unpacked", "see that tar (and gzip, zstd or xz) are on the host"
    ),
}
_ELSE = Cause("the command failed", "read what the host said, and run again")


def of_write(host: str, files: Iterable[Write], result: Result) -> ToolError:
    """Return the error of a failed trip of files; it names the file at fault where one is."""
    kind, detail = _mark(result)
    if kind == "changed":
        return StalePlan(
            f"cannot write {detail} on {host}: somebody changed it since it was looked at",
            host=host,
            remedy="run the same command again: it looks anew, and keeps what they wrote",
        )
    path = _mark(result)[1].split(" ")[0] or next(iter(files)).path.path
    return _failed(f"cannot write {path}", path, host, result)


def of_push(host: str, action: Push, result: Result) -> CommandFailed:
    """Return the error of a failed push."""
    path = action.path.path
    return _failed(f"cannot unpack into {path}", path, host, result)


def _failed(what: str, path: str, host: str, result: Result) -> CommandFailed:
    kind, detail = _mark(result)
    cause = cause_of(kind, result)
    shown = {"link": detail.partition(" -> ")[2], "owner": detail.rpartition(" ")[2]}.get(kind, "")
    more = f" ({shown.strip('()')})" if shown else ""
    folder = path.rpartition("/")[0] or "/"
    return CommandFailed(
        f"{what} on {host}: {cause.why}{more}",
        ran=what.removeprefix("cannot "),
        exit_code=result.exit,
        said=_MARK.sub("", result.tail()).strip(),
        host=host,
        remedy=cause.remedy.format(path=path, folder=folder),
    )


def _mark(result: Result) -> tuple[str, str]:
    found = _MARK.search(result.stderr)
    return (found[1], found[2]) if found else ("", "")


def cause_of(kind: str, result: Result) -> Cause:
    """Return the cause: what the system said outweighs the place where it said it."""
    if result.exit == 124:
        return Cause("it took too long", "see whether the disk hangs (dmesg), then run again")
    if kind == "owner" and "invalid" in result.stderr:
        return _BY_KIND["owner"]
    by_text = next((cause for text, cause in _BY_TEXT.items() if text in result.stderr), None)
    return by_text or _BY_KIND.get(kind, _ELSE)


_SUDO_WARNS = re.compile(r"sudo: (?:unable to resolve host|setrlimit|unable to send audit)")
"""What sudo says and goes on: the first where a host has no entry for its own name."""


def of_sudo(host: str, user: str, result: Result) -> CommandFailed | None:
    """Return the error when it was sudo that spoke, and not the command it was to run."""
    lines = (line for line in result.stderr.lstrip().splitlines() if not _SUDO_WARNS.match(line))
    first = next(lines, "")
    spoke = re.match(r"sudo:|Sorry, |\S+: .*exec: sudo:|sh: .*sudo: not", first)
    if result.exit == 0 or result.stdout or not spoke:
        return None
    why, remedy = _sudo_fault(first, user or "the login")
    return CommandFailed(
        f"cannot become root on {host}: {why}",
        ran="sudo -n sh",
        exit_code=result.exit,
        said=result.tail(3),
        host=host,
        remedy=remedy,
    )


def _sudo_fault(said: str, user: str) -> tuple[str, str]:
    allow = f"visudo: {user} ALL=(root) NOPASSWD: ALL"
    if "not found" in said:
        return "sudo is not installed there", "log in as root (user: root), or install sudo"
    if "tty" in said and "password" not in said:
        return "sudo wants a terminal", f"visudo: Defaults:{user} !requiretty"
    if re.search("not in the sudoers|not allowed|may not run", said):
        return f"sudo does not let {user} run sh", allow
    return "sudo asks for a password", f"allow it without one ({allow}), or log in as root"


def of_lock(host: str, folder: str, holder: str) -> LockHeld:
    """Return the error of a lock that somebody else holds, from the lines of its holder."""
    identity, since, details = (*holder.strip().split("\n", 2), "", "", "")[:3]
    process = identity.split(" ")[0] or "?"
    return LockHeld(
        f"cannot lock {host}: {details.strip() or 'somebody else'} holds it since {since or '?'}",
        host=host,
        said=f"{folder}/holder, process {process}",
        remedy=f"wait for it to end; if that run is gone: kill {process} on {host}",
    )
