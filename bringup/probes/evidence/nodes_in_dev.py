"""Modes of device files, as `ls -l` and `stat` print them, and who may open them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...core.reading import Known, Reading
from ..access import Access
from ..imex import Imex
from ..rdma import RdmaNodes
from .asked import HOST, Asked, Output
from .piece import Piece, absent, known


@dataclass(frozen=True, slots=True)
class Mode:
    """Permissions of a file as `ls -l` writes them (``crw-rw----``), with its owners."""

    letters: str
    owner: str
    group: str

    def __str__(self) -> str:
        return f"{self.letters} {self.owner} {self.group}"


class NodeModes(dict[str, Mode]):
    """Modes of device files by path."""


_ROW = re.compile(r"(?m)^(c[rwx-]{9})[.+@]?\s+\d+\s+(\S+)\s+(\S+)\s+\d+,\s*\d+\s.*?\s(\S+)$")
_STAT = re.compile(
    r"File: (?P<path>/dev/\S+)\s.*?"
    r"Access: \(\d+/(?P<mode>c[rwx-]{9})\)\s+"
    r"Uid: \(\s*\d+/\s*(?P<user>\S+)\)\s+Gid: \(\s*\d+/\s*(?P<group>\S+)\)",
    re.DOTALL,
)


_FORMAT = re.compile(r"(?m)^([0-7]{3}|c[rwx-]{9}) (\S+?)[: ](\S+) (/dev/[\w/-]+)$")
"""``stat -c '%a %U:%G %n'``, the usual form."""


def _letters(mode: str) -> str:
    """Return ``crw-rw----`` for 660."""
    if mode.startswith("c"):
        return mode
    bits = "".join(f"{int(digit):03b}" for digit in mode)
    letters = zip("rwxrwxrwx", bits, strict=True)
    return "c" + "".join(letter if bit == "1" else "-" for letter, bit in letters)


def read_modes(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls -l` of device files, or `stat` of them."""
    if asked.place != HOST:
        return
    folder = asked.path.rstrip("/")
    modes = {
        name if name.startswith("/") else f"{folder}/{name}": Mode(letters, owner, group)
        for letters, owner, group, name in _ROW.findall(output.stdout)
    }
    for found in _STAT.finditer(output.stdout):
        modes[found["path"]] = Mode(found["mode"], found["user"], found["group"])
    for letters, owner, group, name in _FORMAT.findall(output.stdout):
        modes[name] = Mode(_letters(letters), owner, group)
    if modes:
        yield known(NodeModes(modes), output.line)


def leaves_out(asked: Asked, output: Output) -> bool:
    """Tell whether a filter took device files of RDMA away that matter."""
    return asked.is_partial(output) or not all(map(asked.matches, ("uverbs0", "rdma_cm", "umad0")))


def read_verbs(path: str, output: Output) -> Iterator[Piece]:
    """Read `ls /dev/infiniband/uverbs*`: that there is none says enough, that some are does not."""
    is_all = path in ("/dev/infiniband/*", "/dev/infiniband/uverbs*")
    if is_all and output.has_no_file and not output.stdout.strip():
        yield absent(RdmaNodes, output.line)
    elif path.endswith("/*") and output.code == 0:
        names = tuple(re.findall(r"/dev/infiniband/(\w+\d|rdma_cm)\b", output.stdout))
        if names:
            yield known(RdmaNodes(names), " ".join(names))


def read_channels(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls /dev/nvidia-caps-imex-channels`."""
    is_there = bool(re.search(r"\bchannel\d+\b", output.stdout))
    if is_there or (output.has_no_file and asked.place == HOST):
        yield known(Imex("", channels=is_there), output.line)


def closed_to(modes: Mapping[str, Mode], access: Reading[Access]) -> tuple[str, ...]:
    """Return the device files, with their modes, that a login surely may not open."""
    if not isinstance(access, Known):
        return ()
    return tuple(
        f"{path} ({mode})" for path, mode in modes.items() if _is_closed(mode, access.value)
    )


def _is_closed(mode: Mode, login: Access) -> bool:
    """Tell whether the mode keeps a login out; groups that were not told may let it in."""
    may = mode.letters[1:]
    if login.is_root or login.user == "root" or may[6:8] == "rw":
        return False
    if login.user == mode.owner:
        return may[0:2] != "rw"
    if may[3:5] == "rw":
        return bool(login.groups) and mode.group not in login.groups
    return bool(login.user)
