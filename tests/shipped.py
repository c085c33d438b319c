"""What the project ships, read plainly for tests that are not about reading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bringup.core.host import Kind

FOLDER = Path(__file__).parent.parent / "inventory" / "kinds"


def _kind(path: Path) -> Kind:
    told: dict[str, Any] = yaml.safe_load(path.read_text())  # Any: values of several types
    lists = {key: tuple(value) for key, value in told.items() if isinstance(value, list)}
    return Kind(path.stem, **{**told, **lists})


KINDS = {path.stem: _kind(path) for path in sorted(FOLDER.glob("*.yml"))}
