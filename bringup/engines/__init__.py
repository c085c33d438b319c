"""One file an engine: settled knobs to argv and environment.

`ENGINES` and `KNOBS` are made on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine import Engine

    ENGINES: Mapping[str, Engine]


def __getattr__(name: str) -> object:
    if name == "ENGINES":
        from .collect import engines

        return engines()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
