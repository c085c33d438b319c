"""Is a model folder whole, and in what does a host's folder differ from the one it is to equal?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from .folder import POINTER_BYTES, File, Folder, Seat

UNFINISHED = (".incomplete", ".part", ".partial", ".tmp", ".aria2", ".lock", ".crdownload")
IDENTITY = ("config.json",)
"""Files besides the index that say which model this is: other bytes, another model or revision."""

LISTS = ("SHA256SUMS", "sha256sums.txt", "SHA256SUMS.txt")


@dataclass(frozen=True, slots=True)
class Fault:
    """One file that is not as it should be."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.name else self.why


def faults_of(folder: Folder) -> tuple[Fault, ...]:
    """Return what is wrong with a folder by itself, without another one to compare with."""
    if folder.seat is not Seat.FOLDER:
        return (Fault("", f"{folder.path} {folder.why}"),)
    if folder.index and not folder.shards:
        return (Fault(folder.index, "names no weight file"),)
    lost = [Fault(name, "is missing") for name in folder.shards if name not in folder.files]
    if not lost and not folder.weights:
        below = next((name for name, file in folder.files.items() if file.is_weight), "")
        hint = f"; there is {below} below it" if below else ""
        return (Fault("", f"{folder.path} holds no weights{hint}"),)
    bad = [Fault(file.name, why) for file in folder.weights if (why := fault_of(file))]
    return (*lost, *bad)


def fault_of(file: File) -> str:
    """Return what is wrong with one weight file by its own header, "" for nothing that shows.

    Files of other formats than safetensors are judged by nothing but their size.
    """
    header = file.header
    if header is None:
        return ""
    if header.trouble:
        pointer = f"has {file.size} bytes: a git-lfs pointer or a stub"
        return pointer if file.size < POINTER_BYTES else f"begins with {header.trouble}"
    if file.size != header.size:
        word = "short" if file.size < header.size else "too long"
        return f"is {abs(file.size - header.size)} bytes {word}: its header ends at {header.size}"
    if header.misshapen:
        return f"its header gives {header.misshapen} tensors other bytes than type and shape take"
    holes = header.tensor_bytes != header.end
    said = f"its header has holes: {header.tensor_bytes} of {header.end} bytes are tensors"
    return said if holes else ""


def total_fault(folder: Folder) -> str:
    """Return how the sum of all tensors differs from what the index says, "" where it does not."""
    headers = [file.header for file in folder.weights]
    if folder.tensor_bytes is None or not headers or None in headers:
        return ""
    total = sum(header.tensor_bytes for header in headers if header)
    if total == folder.tensor_bytes:
        return ""
    return f"tensors take {total} bytes, {folder.index} says {folder.tensor_bytes}"


def wanted(source: Folder, *, every: bool = False) -> tuple[tuple[File, ...], tuple[File, ...]]:
    """Return the files that make up a model, and weight files left out since no index names them.

    Unfinished files of a download are in neither.
    """
    files = [f for f in source.files.values() if not f.name.endswith(UNFINISHED)]
    if every or not source.shards:
        return tuple(files), ()
    out = tuple(f for f in files if f.is_weight and f.name not in source.shards)
    return tuple(f for f in files if f not in out), out


class Standing(Enum):
    """How a host's file stands to the source's."""

    SAME = "same"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Difference:
    """What a host lacks. `refusal` says why nothing may be copied there, "" where it may.

    `stale` are keys of unfinished files that belong to no file of the source.
    """

    missing: tuple[File, ...] = ()
    wrong: tuple[tuple[File, str], ...] = ()
    foreign: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def files(self) -> tuple[File, ...]:
        """All files to fetch."""
        return (*self.missing, *(file for file, _ in self.wrong))


def difference(
    files: Iterable[File],
    source: Folder,
    target: Folder,
    *,
    replace: bool = False,
    sums: Mapping[str, str] | None = None,
    want: Mapping[str, str] | None = None,
) -> Difference:
    """Compare a host's folder with the files it is to hold.

    `sums` are SHA-256 of the host's files where they were computed, `want` those that they are to
    have. Nothing is mixed: where the
    host holds another model or revision, that is the refusal; `replace` overrules it.
    """
    every = tuple(files)
    standings = {file.name: _standing(file, target, sums or {}, want or {}) for file in every}
    wrong = tuple((f, w) for f in every if (w := standings[f.name]) and w != MISSING)
    missing = tuple(f for f in every if standings[f.name] == MISSING)
    names, keys = set(standings), {file.key for file in every}
    foreign = tuple(name for name in target.files if name not in names)
    refusal = "" if replace else _refusal(every, source, target, [f for f, _ in wrong])
    if target.seat is Seat.OTHER:
        refusal = f"it {target.why}"
    stale = tuple(key for key in target.parts if key not in keys)
    return Difference(missing, wrong, foreign, stale, refusal)


MISSING = "is missing"


def _standing(file: File, target: Folder, sums: Mapping[str, str], known: Mapping[str, str]) -> str:
    """Return "" where the host's file is the source's, else what is wrong with it."""
    there = target.files.get(file.name)
    if there is None:
        return MISSING
    if there.size != file.size:
        word = "short" if there.size < file.size else "too long"
        return f"is {abs(there.size - file.size)} bytes {word}"
    if there.sum and file.sum:
        return "" if there.sum == file.sum else "has other bytes"
    if there.sample != file.sample:
        return fault_of(there) or "has other bytes"
    have, want = sums.get(file.name, ""), known.get(file.name, "")
    if have and want and have != want:
        return f"has the SHA-256 {have[:12]}…, not {want[:12]}…"
    return ""


def _refusal(every: tuple[File, ...], source: Folder, target: Folder, wrong: list[File]) -> str:
    """Say that a folder holds another model or revision, or edited files; "" where it does not."""
    if source.revision and target.revision and source.revision != target.revision:
        return f"it holds revision {target.revision[:12]}, the source is {source.revision[:12]}"
    if extra := sorted(set(target.shards) - set(source.shards)):
        return f"its index names weights that the source lacks: {extra[0]}, …"
    names = [file.name for file in wrong]
    if told := [n for n in names if n in (*IDENTITY, source.index)]:
        return f"it holds another model or revision, by {' and '.join(told)}"
    whole = [f for f in wrong if f.is_weight and target.files[f.name].size == f.size
             and not fault_of(target.files[f.name])]  # fmt: skip
    held = [f for f in every if f.is_weight and f.name in target.files]
    if whole and len(whole) * 2 > len(held):
        return f"it holds other weights of the same shape: {whole[0].name}, …"
    if small := [f.name for f in wrong if not f.is_weight]:
        return f"files there were edited, or come from elsewhere: {' '.join(small[:5])}"
    return ""
