"""Values that a YAML file describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def described(cls: type[T]) -> type[T]:
    """Make a frozen, slotted dataclass whose form in YAML takes no unknown key."""
    made = dataclass(frozen=True, slots=True)(cls)
    made.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return made
