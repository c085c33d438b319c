"""Prompts of a wanted length that no cache has seen: plain words in an order of their own."""

from __future__ import annotations

import hashlib

WORDS = (
    "river", "stone", "cloud", "window", "garden", "letter", "number", "summer",
    "winter", "paper", "silver", "engine", "market", "bridge", "candle", "forest",
    "island", "ladder", "mirror", "needle", "orange", "pencil", "rocket", "saddle",
    "tunnel", "valley",
)  # fmt: skip


def prompt(number: int, count: int, salt: str) -> str:
    """Return text of some words; another number or salt shares no beginning with it."""
    start = hashlib.sha256(f"{salt}:{number}".encode()).hexdigest()
    step = int(start[:8], 16)
    body = [WORDS[(step + place * (step % 23 + 1) + place // 26) % 26] for place in range(count)]
    return f"{start[:16]} {' '.join(body)}"
