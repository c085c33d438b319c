"""All rules that turn facts about one host into choices for its worker, by concern."""

from __future__ import annotations

from ..core.rules import Row, World
from . import engine_by_hand, engine_kernels, engine_model, engine_network, engine_run, engine_start

ROWS: tuple[Row[World], ...] = (
    *engine_model.ROWS,
    *engine_kernels.ROWS,
    *engine_start.ROWS,
    *engine_network.ROWS,
    *engine_run.ROWS,
    *engine_by_hand.ROWS,
)
