"""Files on their way to a host: one tar for all, staged, flushed, and renamed into place. Pure.

Files travel in groups that the host can treat as one: those of one folder, with the same owner and
mode where an owner is to be set. So the number of processes on the host grows with the folders.
"""

from __future__ import annotations

import re
import shlex
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..core.document import sum_of
from ..core.steps import Write
from .hostscripts import FILES, root_line

CHUNK = 32 * 1024 - 64
"""Bytes sent at a time: what one SSH packet of OpenSSH holds."""

_PLAIN = re.compile(r"[^\\\x00-\x1f\x7f]+")
"""Names that sha256sum lists as they are."""

# Groups arrive as folders 0, 1, … of one tar beside a list of their sums. They are staged in the
# folder of the first target, moved to a hidden name beside their own targets when those lie
# elsewhere, and renamed over them once all of them are on the disk. `groups ACT` calls ACT for
# each with: number, mode, owner, folder, name of the only member or "", names of the targets.
_WRITE = r"""
check() {
  in=$4
  shift 5
  for name do
    [ ! -L "$R$in/$name" ] || fail link "$in/$name -> $(readlink "$R$in/$name")"
    [ ! -e "$R$in/$name" ] || [ -f "$R$in/$name" ] || fail special "$in/$name"
  done
  enter "$in/$1"
  for left in "$d"/.bringup.*; do
    { [ ! -e "$left" ] && [ ! -L "$left" ]; } || rm -rf "$left" || fail stage "$in/$1"
  done
}
begin() {
  first="$4/$6"
  folder "$R$first"
  home=$d
  stage="$home/.bringup.$N"
}
place() {
  folder "$R$4/$6"
  staged="$stage/$1"
  [ "$d" = "$home" ] || staged="$d/.bringup.$N.$1"
}
# Sets the members of the group whose folder is $1: the only one, or those named as the targets.
own() {
  owner=$3 mode=$2 at="$4/$6" from="$stage/$1" only=$5
  shift 5
  [ -z "$only" ] || set -- "$only"
  for name do
    shift
    set -- "$@" "$from/$name"
  done
  chown "$owner" "$@" || fail owner "$at ($owner)"
  chmod "$mode" "$@" || fail mode "$at"
}
settle() {
  [ -z "$3" ] || own "$@"
  place "$@"
  [ "$staged" != "$stage/$1" ] || return 0
  mv -f "$stage/$1" "$staged" || fail stage "$4/$6"
  (cd "$staged" && flush ./* ./.[!.]*)
}
flush() {
  sync "$@" 2>/dev/null || :
}
swap() {
  place "$@"
  in=$4 only=$5
  shift 5
  if [ -n "$only" ]; then
    mv -f "$staged/$only" "$R$in/$1" || fail move "$in/$1"
    return
  fi
  for name do
    shift
    set -- "$@" "$staged/$name"
  done
  mv -f "$@" "$R$in/" || blame "$@"
}
blame() {
  for left do
    [ ! -e "$left" ] || fail move "$in/${left##*/}"
  done
  fail move "$in"
}
forget() {
  place "$@"
  [ ! -e "$staged" ] || [ "$staged" = "$stage/$1" ] || rm -rf "$staged"
}
# Whoever edited a file since it was looked at finds it as they left it.
seen() {
  if [ "$2" = absent ]; then
    [ ! -e "$R$1" ] || fail changed "$1"
  else
    now=$(sha256sum 2>/dev/null <"$R$1") || fail changed "$1"
    [ "${now%% *}" = "$2" ] || fail changed "$1"
  fi
}
work() {
  mkdir -m 700 "$stage" || fail stage "$1"
  tar -xpomf - -C "$stage" || fail unpack "$1"
  (cd "$stage" && sha256sum -c sums >/dev/null) || fail sum "$1"
  (cd "$stage" && flush [0-9]*/* [0-9]*/.[!.]*) # one process for all files
  groups settle
  as_seen
  groups swap
}
undo() {
  groups forget
  rm -rf "$stage"
}
groups check
first_group begin
carry_out "$first"
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one folder. `only` is the member's name where the target's cannot be one."""

    folder: str
    mode: int
    owner: str
    only: str
    files: tuple[Write, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_name(file) for file in self.files)

    def members(self) -> Iterator[tuple[str, Write]]:
        """Yield each file with its name in the group's folder of the tar."""
        for file in self.files:
            yield self.only or _name(file), file


def trip(files: Iterable[Write]) -> tuple[Group, ...]:
    """Return the groups that some files travel in; of two for one path, the last is taken."""
    groups: dict[tuple[str, str, int | None, str], list[Write]] = {}
    for file in {file.path.path: file for file in files}.values():
        folder = file.path.path.rpartition("/")[0]
        odd = "" if _PLAIN.fullmatch(_name(file)) else file.path.path
        mode = file.mode if file.owner else None
        groups.setdefault((folder, odd, mode, file.owner), []).append(file)
    return tuple(
        Group(folder, own[0].mode, owner, "odd" if odd else "", tuple(own))
        for (folder, odd, _, owner), own in groups.items()
    )


def _name(file: Write) -> str:
    return file.path.path.rpartition("/")[2]


def write_script(groups: tuple[Group, ...], *, root: str, nonce: str, then: str = "") -> str:
    """Return the script that takes `tar_of(groups)` on stdin and puts each file in its place.

    Where all went well, the script `then` follows.
    """
    calls = [_call(number, group) for number, group in enumerate(groups)]
    lists = f"first_group() {{\n{calls[0]}\n}}\ngroups() {{\n" + "\n".join(calls) + "\n}\n"
    checks = [
        f"seen {shlex.join((file.path.path, file.before))}"
        for group in groups
        for file in group.files
        if file.before
    ]
    lists += "as_seen() {\n" + "\n".join((*checks, ":")) + "\n}\n"
    return f"{root_line(root)}N={nonce}\n{FILES}{lists}{_WRITE}set +u\n{then}"


def _call(number: int, group: Group) -> str:
    words = (str(number), f"{group.mode:04o}", group.owner, group.folder, group.only)
    return f'"$1" {shlex.join((*words, *group.names))}'


def tar_of(groups: tuple[Group, ...]) -> Iterator[bytes]:
    """Yield a tar stream: a folder for each group with its files, and ``sums`` to check them by."""
    sums = []
    for number, group in enumerate(groups):
        yield _head(f"{number}/", 0, 0o700, tarfile.DIRTYPE)
        for name, file in group.members():
            sums.append(_sum_line(f"{number}/{name}", file))
            yield from _member(f"{number}/{name}", file.content, file.mode)
    yield from _member("sums", "".join(sums).encode(), 0o600)
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _sum_line(name: str, file: Write) -> str:
    return f"{sum_of(file.content)}  {name}\n"


def tar_size(groups: tuple[Group, ...]) -> int:
    """Return how many bytes `tar_of` yields, without making them."""
    rows = [
        (f"{number}/{name}", len(file.content))
        for number, group in enumerate(groups)
        for name, file in group.members()
    ]
    sums = sum(64 + len(f"  {name}\n".encode()) for name, _ in rows)
    heads = sum(len(_head(name, size, 0)) for name, size in (*rows, ("sums", sums)))
    block = tarfile.BLOCKSIZE
    padded = sum(size + -size % block for size in (*(size for _, size in rows), sums))
    return heads + padded + block * (len(groups) + 2)


def _member(name: str, content: bytes, mode: int) -> Iterator[bytes]:
    yield _head(name, len(content), mode)
    yield from pieces_of(content)
    yield b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def _head(name: str, size: int, mode: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """GNU's form takes names of any length, which busybox's tar reads as well."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type = size, mode, kind
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def pieces_of(content: bytes) -> Iterator[bytes]:
    """Yield bytes, a chunk at a time."""
    view = memoryview(content)
    for start in range(0, len(content), CHUNK):
        yield bytes(view[start : start + CHUNK])
