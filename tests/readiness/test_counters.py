"""What a worker's metrics tell of requests: nothing is no zero."""

from __future__ import annotations

import pytest

from bringup.core.reading import Absent, Known, Unknown
from bringup.readiness.proof import by_counters, requests

COUNTED = 'sglang:num_requests_total{tp="0"} 7\n'
OTHERS = 'sglang:num_running_reqs{tp="0"} 0\n'


@pytest.mark.parametrize(
    ("page", "asked", "count"),
    [
        (COUNTED, False, 7.0),
        (COUNTED, True, 7.0),
        (OTHERS, False, 0.0),
        (OTHERS, True, None),
        ("<html>404 page not found</html>", False, None),
        ("", True, None),
    ],
)
def test_a_page_without_the_counter_is_zero_only_before_a_request(
    page: str, asked: bool, count: float | None
) -> None:
    assert requests(page, asked=asked) == count


def test_workers_without_counters_prove_nothing_either_way() -> None:
    before, after = {"prefill": 0.0, "decode": 3.0}, {"prefill": None, "decode": 4.0}
    assert isinstance(by_counters(before, after), Unknown)


def test_a_counter_that_stands_still_shows_that_a_side_stood_idle() -> None:
    before = {"prefill": 3.0, "decode": 3.0}
    assert isinstance(by_counters(before, {"prefill": 3.0, "decode": 4.0}), Absent)
    assert isinstance(by_counters(before, {"prefill": 4.0, "decode": 4.0}), Known)
