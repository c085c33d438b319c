"""Model folders for tests, and the odd things that stand in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bringup.edge.bundle_files import Opened, open_archive
from bringup.flow.bundle import make, read_here
from tests.dynamo.model import toy_kimi, toy_model

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def safetensors(*, size: int = 64) -> bytes:
    """Return a small file of weights, header and all."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def with_weights(folder: Path) -> Path:
    """Return a toy model folder with shards, an index, and things that stay out."""
    toy_model(folder)
    (folder / "model-00001-of-00002.safetensors").write_bytes(safetensors())
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04rest")
    (folder / "renamed.dat").write_bytes(safetensors())
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "assets").mkdir()
    (folder / "assets" / "logo.svg").write_text("<svg/>")
    return folder


def hub_snapshot(cache: Path, *, revision: str = "0" * 39 + "a") -> Path:
    """Return a snapshot as a hub's cache holds it: links into blobs beside it."""
    model = cache / "models--moonshotai--Kimi-K3"
    plain = toy_kimi(cache / "plain")
    snapshot = model / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    for number, path in enumerate(sorted(plain.iterdir())):
        blob = model / "blobs" / f"{number:040x}"
        path.rename(blob)
        (snapshot / path.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


def bundle_of(folder: Path, path: Path) -> Opened:
    """Return the bundle of a model folder here, written and opened again."""
    make(read_here(folder), path)
    return open_archive(path)
