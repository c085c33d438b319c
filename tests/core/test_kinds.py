"""Which kind of host it is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bringup.core.host import Host, Kind, Login
from bringup.core.kinds import find_kind, kind_for
from bringup.core.reading import Unknown

from ..shipped import KINDS

HOST = Host("host", Login("host"))


@dataclass(frozen=True)
class Board:
    name: str
    compute_capability: str = ""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA B200", "b200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA H200 NVL", "pcie"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GB10", "gb10"),
    ],
)
def test_the_longest_product_name_wins(name: str, kind: str) -> None:
    found = kind_for(KINDS, [Board(name)], HOST)
    assert found is not None
    assert found.name == kind


def test_a_name_that_only_starts_alike_is_no_match() -> None:
    assert kind_for(KINDS, [Board("NVIDIA B2000 Ada")], HOST) is None


def test_a_capability_of_two_kinds_decides_nothing() -> None:
    reading = find_kind(KINDS, [Board("Graphics Device", "10.0")], HOST)
    assert isinstance(reading, Unknown)
    assert "b200, gb200" in reading.why


def test_a_capability_of_one_kind_decides() -> None:
    found = kind_for(KINDS, [Board("Graphics Device", "12.1")], HOST)
    assert found is not None
    assert found.name == "gb10"


def test_boards_of_two_kinds_are_of_unknown_kind() -> None:
    assert kind_for(KINDS, [Board("NVIDIA B200"), Board("NVIDIA H200")], HOST) is None


def test_the_inventory_overrules_the_name() -> None:
    host = Host("host", Login("host"), kind="b300")
    found = kind_for(KINDS, [Board("NVIDIA B200")], host)
    assert found is not None
    assert found.name == "b300"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_names_its_source(kind: Kind) -> None:
    assert kind.source
