"""The last line of a run over many hosts: how many came out how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from ..core.errors import Exit


def summary_view(counts: Mapping[str, int]) -> Text:
    """Return the counts in one line, in the order given."""
    total = sum(counts.values())
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    return Text(f"{total} {'host' if total == 1 else 'hosts'}: {words}", "bold")


def summary_document(counts: Mapping[str, int], code: Exit) -> dict[str, Any]:
    """Return the counts and the exit code as plain data: the end of a stream of hosts."""
    return {"schema": "bringup.summary/1", "counts": dict(counts), "exit": int(code)}
