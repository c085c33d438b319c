"""What lies in a model folder, as far as copying and checking weights need to know it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ckpt", ".h5", ".msgpack", ".onnx")
"""How names of weight files end."""

PARTS = ".bringup-weights"
"""Folder in a model folder where files lie until they are whole; engines do not look into it."""

POINTER_BYTES = 1024
"""A git-lfs pointer has some 130 bytes, a shard millions."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the header of a safetensors file says. Bytes.

    https://huggingface.co/docs/safetensors: 8 bytes of length, JSON of that length, tensor data.
    """

    length: int  # of the JSON
    tensors: int
    end: int  # the largest end of a tensor, from the end of the header
    tensor_bytes: int  # sum over all tensors
    misshapen: int = 0  # tensors whose type and shape take other bytes than their place has
    trouble: str = ""

    @property
    def size(self) -> int:
        """Bytes that the whole file has to have."""
        return 8 + self.length + self.end


@dataclass(frozen=True, slots=True)
class File:
    """One file, links followed.

    `sum` is the SHA-256 of the whole file where it was computed: always for small files. `sample`
    is a sum over the first, middle and last bytes of a weight file: other weights of the same
    shape differ in it. `told` is a SHA-256 that a hub's cache or a list of sums names.
    """

    name: str
    size: int
    sum: str = ""
    sample: str = ""
    header: Header | None = None
    told: str = ""

    @property
    def is_weight(self) -> bool:
        return self.name.endswith(WEIGHTS)

    @property
    def key(self) -> str:
        """Name its unfinished part: another content has another key."""
        text = f"{self.name}\0{self.size}\0{self.sample or self.sum}"
        return hashlib.sha256(text.encode()).hexdigest()[:20]


class Seat(Enum):
    """What stands at the path of a model folder."""

    FOLDER = "folder"
    ABSENT = "absent"
    OTHER = "other"  # a file, or a place that cannot be entered


@dataclass(frozen=True, slots=True)
class Ground:
    """What a host has besides files: room, programs, line speed. None and "" mean: not told."""

    total_bytes: int | None = None
    free_bytes: int | None = None
    file_system: str = ""
    ssh: str = ""
    sshd: str = ""
    user: str = ""
    line_mb_s: Mapping[str, float] = field(default_factory=dict)  # by network device
    may_write: bool | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """A model folder as one trip sees it.

    `shards` are the weight files that the index names, () without an index; `tensor_bytes` is
    what it says that all tensors take. `parts`: unfinished files by key, with their bytes.
    """

    path: str
    seat: Seat = Seat.FOLDER
    real: str = ""
    files: Mapping[str, File] = field(default_factory=dict)
    index: str = ""
    shards: tuple[str, ...] = ()
    tensor_bytes: int | None = None
    revision: str = ""
    parts: Mapping[str, int] = field(default_factory=dict)
    ground: Ground = Ground()
    why: str = ""  # for a seat that is no folder

    @property
    def weights(self) -> tuple[File, ...]:
        """The weight files that count: those of the index, or all in the folder itself."""
        own = tuple(n for n, file in self.files.items() if file.is_weight and "/" not in n)
        names = self.shards or own
        return tuple(self.files[name] for name in names if name in self.files)

    @property
    def weight_bytes(self) -> int:
        return sum(file.size for file in self.weights)
