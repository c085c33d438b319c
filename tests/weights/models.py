"""Small models with weights that are right in every respect but their size."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

from tests.dynamo.model import toy_model

BITS = {"F32": 32, "BF16": 16, "U8": 8, "F4": 4}


def shard(
    path: Path, *, tensors: int = 3, kib: int = 64, seed: int = 1, dtype: str = "BF16"
) -> int:
    """Write one file of weights; return the bytes of its tensors."""
    size = kib * 1024 // tensors // 64 * 64
    header: dict[str, dict[str, object]] = {"__metadata__": {"format": "pt"}}
    end = 0
    for number in range(tensors):
        shape = [size * 8 // BITS[dtype] // 8, 8]
        header[f"model.layers.{number}.mlp.weight"] = {
            "dtype": dtype, "shape": shape, "data_offsets": [end, end + size],
        }  # fmt: skip
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + random.Random(seed).randbytes(end))
    return end


def model(folder: Path, *, shards: int = 3, kib: int = 64, seed: int = 1) -> Path:
    """Write a model folder: configuration, tokenizer, shards and their index."""
    toy_model(folder)
    names = [f"model-{n:05}-of-{shards:05}.safetensors" for n in range(1, shards + 1)]
    total = sum(shard(folder / name, kib=kib, seed=seed + n) for n, name in enumerate(names))
    weights = {f"model.layers.{n}.mlp.weight": name for n, name in enumerate(names)}
    index = {"metadata": {"total_size": total}, "weight_map": weights}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    return folder


def hub_snapshot(cache: Path, plain: Path, *, revision: str = "0" * 39 + "a") -> Path:
    """Return a model as a hub's cache holds it: links into blobs named by their SHA-256."""
    home = cache / "models--toy--Model"
    snapshot = home / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (home / "blobs").mkdir()
    for path in sorted(plain.iterdir()):
        name = hashlib.sha256(path.read_bytes()).hexdigest()
        path.rename(home / "blobs" / name)
        (snapshot / path.name).symlink_to(f"../../blobs/{name}")
    return snapshot
