"""The K3 image for tests: the repository's folder with the stand-in's paths and a real patch."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path
from typing import Any

import yaml

from . import standin
from .folders import ROOT

CACHE_FILE = "mem_cache/radix_cache.py"
ARGS_FILE = "sglang/srt/server_args.py"
LINK = "https://github.com/sgl-project/sglang/pull/1"


def overlay_entry(**changed: Any) -> dict[str, Any]:
    """Return a patch that lays a whole file over the source, as the field's recipe does."""
    return {
        "overlay": "sglang/srt",
        "onto": "/sgl-workspace/sglang/python/sglang/srt",
        "reason": "a mark that a test can find",
        "link": LINK,
        "replaces": {CACHE_FILE: standin.source_sum(f"sglang/srt/{CACHE_FILE}")},
        **changed,
    }


def diff_entry(**changed: Any) -> dict[str, Any]:
    """Return a patch that is a unified diff."""
    return {
        "diff": "server-args.diff",
        "onto": "/sgl-workspace/sglang/python",
        "reason": "another mark",
        "link": LINK,
        "replaces": {ARGS_FILE: standin.source_sum(ARGS_FILE)},
        **changed,
    }


def diff_text(mark: str = "# patched by a diff") -> str:
    """Return a diff that adds a line after the first of server_args.py."""
    old = standin.source(ARGS_FILE).decode().splitlines(keepends=True)
    new = [old[0], f"{mark}\n", *old[1:]]
    return "".join(difflib.unified_diff(old, new, f"a/{ARGS_FILE}", f"b/{ARGS_FILE}"))


def make_k3(root: Path, *, mark: str = "# patched", **changed: Any) -> Path:
    """Write the K3 folder below ``root/images``, patched, for the stand-in's Python."""
    source, folder = ROOT / "images/dynamo-sglang-k3", root / "images/dynamo-sglang-k3"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    document = yaml.safe_load((source / "image.yml").read_text())
    document |= {
        "python": "3.11",
        "packages": ["ai-dynamo==1.3.0.post1", "ai-dynamo-runtime==1.3.0.post1", "plain==1.0"],
        "constraints": None,
        "patches": [overlay_entry(), diff_entry()],
        "gate": [_without_torch(step) for step in document["gate"]],
        **changed,
    }
    document = {key: value for key, value in document.items() if value is not None}
    (folder / "image.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    body = standin.source(f"sglang/srt/{CACHE_FILE}") + f"\n{mark}\n".encode()
    patched = folder / "patches/sglang/srt" / CACHE_FILE
    patched.parent.mkdir(parents=True, exist_ok=True)
    patched.write_bytes(body)
    (folder / "patches/server-args.diff").write_text(diff_text())
    return folder


def _without_torch(step: dict[str, Any]) -> dict[str, Any]:
    """The stand-in has the engine's source alone: what the engine itself needs is not there."""
    if step["check"] == "imports_resolve":
        return {**step, "allow": NOT_IN_THE_STANDIN}
    if step["check"] == "requirements_met":
        return {**step, "allow": [f"{line}, which is not installed." for line in UNMET]}
    return step


UNMET = [
    *(
        f"ai-dynamo 1.3.0.post1 requires {name}"
        for name in (
            "aiohttp", "kubernetes", "msgspec", "prometheus-client", "pyzmq", "transformers",
            "typing-extensions", "zstandard",
        )
    ),
    *(f"ai-dynamo-runtime 1.3.0.post1 requires {name}" for name in ("pydantic", "uvloop")),
]  # fmt: skip


NOT_IN_THE_STANDIN = [
    "PIL", "aiohttp", "fsspec", "httpx", "msgspec", "numpy", "nvtx", "pydantic", "safetensors",
    "torch", "typing_extensions", "uvloop", "yaml", "yarl", "zmq",
]  # fmt: skip
