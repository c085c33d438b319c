"""Which files of a model folder go into a bundle: every file that is no weight.

Never a fixed list: K3 keeps its chat text in `encoding_k3.py`, others in a template. Weights are
told by name, by size and by their first bytes, each alone being enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from .names import trouble

HEAD_BYTES = 512
"""How much of a file's beginning a decision needs."""

FILE_LIMIT = 64 * 1024 * 1024
"""A larger file is a weight, whatever it is called. The largest tokenizers are 35 MB."""

TOTAL_LIMIT = 256 * 1024 * 1024
COUNT_LIMIT = 400
"""A folder with more than this, weights left out, is not a model folder."""

WEIGHT_SUFFIXES = (
    *(".safetensors", ".bin", ".gguf", ".ggml", ".onnx", ".onnx_data", ".tflite", ".h5", ".hdf5"),
    *(".pt", ".pth", ".ckpt", ".msgpack", ".npy", ".npz", ".pkl", ".pickle", ".joblib", ".ot"),
    *(".distcp", ".engine", ".plan", ".mar", ".nemo", ".pdparams", ".params", ".tensors"),
)  # fmt: skip

ARCHIVE_SUFFIXES = (".tgz", ".tar", ".tar.gz", ".tar.xz", ".tar.zst", ".zip", ".7z", ".whl")

SKIPPED_FOLDERS = ("__pycache__",)
"""Besides folders whose name begins with a dot: .git, .cache, .ipynb_checkpoints."""


class Kind(Enum):
    """What stands under a name. Only FILE can go into a bundle."""

    FILE = "file"  # or a link to one inside the folder
    OUTSIDE = "a link that leads outside the folder"
    BROKEN = "a link to nothing"
    FOLDER_LINK = "a link to a folder"
    SPECIAL = "a socket, device or pipe"
    UNREADABLE = "unreadable"


class Why(Enum):
    """Why a file stays out."""

    WEIGHT_NAME = "named like weights"
    WEIGHT_SIZE = "too large for anything but weights"
    WEIGHT_CONTENT = "holds weights"
    POINTER = "a pointer to a file that was never fetched"
    ARCHIVE = "an archive"
    KIND = "not a file"
    NAME = "its name"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One name found in a folder. `head` is the file's beginning, size its bytes."""

    name: str
    size: int = 0
    head: bytes = b""
    kind: Kind = Kind.FILE
    sha256: str = ""  # "" where nobody summed it


@dataclass(frozen=True, slots=True)
class Left:
    """A file that stays out, and why."""

    name: str
    size: int
    why: Why
    detail: str

    def __str__(self) -> str:
        return f"{self.name} ({self.size} bytes): {self.detail}"


@dataclass(frozen=True, slots=True)
class Selection:
    """What goes in and what stays out, each by name."""

    taken: tuple[Candidate, ...]
    left: tuple[Left, ...]

    @property
    def size(self) -> int:
        """Bytes that go in."""
        return sum(candidate.size for candidate in self.taken)

    @property
    def excess(self) -> str:
        """Why this cannot be a model folder, or ""."""
        if len(self.taken) > COUNT_LIMIT:
            return f"{len(self.taken)} files without weights, more than {COUNT_LIMIT}"
        if self.size > TOTAL_LIMIT:
            return f"{self.size} bytes without weights, more than {TOTAL_LIMIT}"
        return ""


def select(candidates: Iterable[Candidate], *, file_limit: int = FILE_LIMIT) -> Selection:
    """Return which candidates go into a bundle, and why the others stay out."""
    taken: list[Candidate] = []
    left: list[Left] = []
    for candidate in sorted(candidates, key=lambda one: one.name):
        reason = _reason(candidate, file_limit)
        if reason is None:
            taken.append(candidate)
        else:
            left.append(Left(candidate.name, candidate.size, *reason))
    return Selection(tuple(taken), tuple(left))


def _reason(candidate: Candidate, file_limit: int) -> tuple[Why, str] | None:
    name = candidate.name.lower()
    if candidate.kind is not Kind.FILE:
        return Why.KIND, candidate.kind.value
    if trouble(candidate.name):
        return Why.NAME, trouble(candidate.name)
    if name.endswith(WEIGHT_SUFFIXES):
        return Why.WEIGHT_NAME, f"named like weights (*{name[name.rfind('.') :]})"
    if name.endswith(ARCHIVE_SUFFIXES):
        return Why.ARCHIVE, "an archive: no frontend reads it"
    if candidate.size > file_limit:
        return Why.WEIGHT_SIZE, f"larger than {file_limit} bytes"
    return _told_by_content(candidate)


def _told_by_content(candidate: Candidate) -> tuple[Why, str] | None:
    head = candidate.head
    for start, detail in _POINTERS:
        if start in head[:256]:
            return Why.POINTER, detail
    if _is_safetensors(head, candidate.size):
        return Why.WEIGHT_CONTENT, "begins like a safetensors file"
    for place, magic, what in _MAGIC:
        if head[place : place + len(magic)] == magic:
            return what
    return None


def _is_safetensors(head: bytes, size: int) -> bool:
    """Eight bytes with the length of a JSON object, then that object, then the tensors.

    Source: https://github.com/huggingface/safetensors, section Format.
    """
    length = int.from_bytes(head[:8], "little")
    return len(head) > 8 and head[8:9] == b"{" and 0 < length <= size - 8


_POINTERS = (
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer"),
    (b"version https://hawser.github.com/spec/", "a Git LFS pointer"),
    (b"/annex/objects/", "a git-annex pointer"),
)

_MAGIC: tuple[tuple[int, bytes, tuple[Why, str]], ...] = (
    (0, b"GGUF", (Why.WEIGHT_CONTENT, "begins like a GGUF file")),
    (0, b"ggjt", (Why.WEIGHT_CONTENT, "begins like a GGML file")),
    (0, b"lmgg", (Why.WEIGHT_CONTENT, "begins like a GGML file")),
    (0, b"\x93NUMPY", (Why.WEIGHT_CONTENT, "begins like a NumPy array")),
    (0, b"\x89HDF\r\n\x1a\n", (Why.WEIGHT_CONTENT, "begins like an HDF5 file")),
    (4, b"TFL3", (Why.WEIGHT_CONTENT, "begins like a TensorFlow Lite file")),
    *((0, bytes((0x80, version)), (Why.WEIGHT_CONTENT, "begins like a pickle"))
      for version in range(2, 6)),
    (0, b"PK\x03\x04", (Why.WEIGHT_CONTENT, "a zip archive, as PyTorch writes weights")),
    (0, b"PK\x05\x06", (Why.WEIGHT_CONTENT, "a zip archive, as PyTorch writes weights")),
    (0, b"\x1f\x8b", (Why.ARCHIVE, "a gzip archive")),
    (0, b"\x28\xb5\x2f\xfd", (Why.ARCHIVE, "a zstd archive")),
    (0, b"\xfd7zXZ\0", (Why.ARCHIVE, "an xz archive")),
    (0, b"BZh", (Why.ARCHIVE, "a bzip2 archive")),
    (257, b"ustar", (Why.ARCHIVE, "a tar archive")),
)  # fmt: skip
