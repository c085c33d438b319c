"""Image folders for tests: a small valid one, changed word by word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
TEMPLATE = (ROOT / "images/dynamo-sglang-k3/Dockerfile.j2").read_text()


def words(**changed: Any) -> dict[str, Any]:
    """Return the words of a valid `image.yml`, some of them changed; None takes a key away."""
    plain: dict[str, Any] = {
        "schema": "bringup.image/1",
        "name": "small",
        "tag": "1.0",
        "base": {"reference": "base:1"},
        "engine": {"name": "sglang", "version": "0.5.18", "path": "/engine/sglang"},
        "packages": ["ai-dynamo==1.3.0.post1", "ai-dynamo-runtime==1.3.0.post1"],
        "no_deps": ["ai-dynamo", "ai-dynamo-runtime"],
        "python": "3.11",
        "gate": [{"check": "engine_unchanged"}],
    }
    return {key: value for key, value in {**plain, **changed}.items() if value is not None}


def make_folder(root: Path, *, files: dict[str, bytes] | None = None, **changed: Any) -> Path:
    """Write an image folder below ``root/images`` and return it."""
    document = words(**changed)
    folder = root / "images" / "small"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "image.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    (folder / "Dockerfile.j2").write_text(TEMPLATE)
    for name, body in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder
