"""Fixtures of this folder."""

from __future__ import annotations

from tests.fleet.fixtures import yard

__all__ = ["yard"]
