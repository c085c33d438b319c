"""The page of all checks is the one that the rows make."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.rules import CHECKS, OPT_IN
from bringup.rules.page import GROUPS, MARK, page

PAGE = Path(__file__).parent.parent.parent / "docs" / "checks.md"


def test_the_page_is_made_from_the_rows(request: pytest.FixtureRequest) -> None:
    made, _, by_hand = page(CHECKS, OPT_IN).partition(MARK)
    stands, _, rest = PAGE.read_text().partition(MARK)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made + MARK + (rest or by_hand))
        return
    assert stands == made, "run pytest --update-golden tests/rules/test_page.py and review it"


def test_every_check_is_on_the_page() -> None:
    text = PAGE.read_text()
    assert [row.id for row in (*CHECKS, *OPT_IN) if f"| {row.id} |" not in text] == []


def test_every_group_of_checks_has_a_heading() -> None:
    prefixes = {prefix for prefix, _ in GROUPS}
    assert {row.id.partition("-")[0] for row in (*CHECKS, *OPT_IN)} <= prefixes


@pytest.mark.parametrize("row", [*CHECKS, *OPT_IN], ids=lambda row: row.id)
def test_a_source_in_our_own_pages_resolves(row: object) -> None:
    source = str(getattr(row, "source", ""))
    if not source.startswith("docs/"):
        return
    path, _, anchor = source.partition("#")
    text = (PAGE.parent.parent / path).read_text()
    headings = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]
    anchors = {h.lower().replace(" ", "-").replace("(", "").replace(")", "") for h in headings}
    assert not anchor or anchor in anchors, f"{source} names no heading"
