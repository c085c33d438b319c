"""`podman info` as people see it: YAML of plain keys, read without a library."""

from __future__ import annotations

import re
from typing import Any


def document(text: str) -> dict[str, Any]:  # Any: as deep as the text is indented
    """Return keys and values by indentation; lists are left out, {} for what is no such text."""
    root: dict[str, Any] = {}
    levels: list[tuple[int, dict[str, Any]]] = [(-1, root)]
    for line in text.splitlines():
        found = re.match(r"( *)([A-Za-z][\w.-]*):(?: (.*))?$", line.rstrip())
        if found is None:
            continue
        depth, key, value = len(found[1]), found[2], found[3]
        while levels[-1][0] >= depth:
            levels.pop()
        if value is None or not value.strip():
            child: dict[str, Any] = {}
            levels[-1][1][key] = child
            levels.append((depth, child))
        else:
            levels[-1][1][key] = value.strip().strip("\"'")
    return root
