"""SHA-256 of whole weight files, computed on the host that has them, several at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import CommandFailed, UsageError
from ..core.event import Event, Listen
from ..core.steps import Run
from ..core.words import HostPath
from ..edge.actions import ScriptedRemote
from ..weights.folder import File

AT_ONCE = 4

_SUMS = r"""
cd -- "$1" || exit
xargs -0 -n 1 -P "$2" sha256sum --
"""
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def sums_of(
    remote: ScriptedRemote, folder: str, files: Iterable[File], listen: Listen
) -> dict[str, str]:
    """Return the sums of files by name; reads them whole. Raises CommandFailed."""
    names = [file.name for file in files]
    found: dict[str, str] = {}
    if not names:
        return found

    def line(text: str) -> None:
        if told := _LINE.fullmatch(text.strip()):
            found[told[2]] = told[1]
            share = len(found) / len(names)
            listen(Event(remote.host.name, "hash", f"{len(found)} of {len(names)} files", share))

    words = ("sh", "-c", _SUMS, "sh", HostPath(folder), str(AT_ONCE))
    listed = "".join(f"{name}\0" for name in names).encode()
    result = remote.run(Run(words, 86400, input=listed), on_line=line)
    lost = [name for name in names if name not in found]
    if result.exit != 0 or lost:
        raise CommandFailed(
            f"cannot sum {lost[0] if lost else folder}",
            ran=f"sha256sum {folder}/*",
            exit_code=result.exit,
            said=result.tail(3),
            host=remote.host.name,
            remedy="a file that cannot be read whole: see dmesg on the host for disk errors",
        )
    return found


def read_sums(path: str) -> dict[str, str]:
    """Return sums by file name: from lines of sha256sum, or a folder of git-lfs pointers.

    Raises UsageError where there are none.
    """
    place = Path(path)
    try:
        if place.is_dir():
            found = {
                p.relative_to(place).as_posix(): s for p in place.rglob("*") if (s := _pointer(p))
            }
        else:
            lines = (_LINE.fullmatch(line.strip()) for line in place.read_text().splitlines())
            found = {m[2].removeprefix("./"): m[1] for m in lines if m}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read sums from {path}: {error}") from error
    if found:
        return found
    raise UsageError(
        f"cannot read sums from {path}: it names none",
        remedy="give a file of sha256sum's lines, or a clone made with GIT_LFS_SKIP_SMUDGE=1",
    )


def _pointer(path: Path) -> str:
    """Return the sum that a git-lfs pointer names, "" for any other file."""
    if not path.is_file() or path.stat().st_size > 1024:
        return ""
    found = re.search(rb"^oid sha256:([0-9a-f]{64})$", path.read_bytes(), re.MULTILINE)
    return found[1].decode() if found else ""
