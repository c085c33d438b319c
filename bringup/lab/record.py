"""What the fleet writes down about itself, as JSON files in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """Return a JSON file's content; a missing or half-written one is an empty one."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: Path, value: object) -> None:
    """Replace a JSON file whole."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value, indent=2) + "\n")
    fresh.replace(path)
