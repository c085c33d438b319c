"""Versions compare as the packages that carry them mean it."""

from __future__ import annotations

import pytest

from bringup.core.version import at_least, version, within

ORDER = [
    "0.5.9", "0.5.14", "0.5.15", "0.5.15.post1", "0.5.18.dev3", "0.5.18rc1", "0.5.18",
    "1.3.0", "1.3.0.post1", "1.3.1", "12.8", "12.9", "570.133.20", "580.95.05",
]  # fmt: skip


def test_versions_sort_as_published() -> None:
    keys = [version(text) for text in ORDER]
    assert None not in keys
    assert sorted(keys, key=lambda k: k or version("0")) == keys  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("one", "other"), [("1.3", "1.3.0"), ("v0.24.0", "0.24.0"), ("0.5.18+k3", "0.5.18")]
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert version(one) == version(other)


@pytest.mark.parametrize("text", ["", "latest", "main", "1.x", "kimi-k3", "1.3.0-k3"])
def test_a_text_that_is_no_version_is_none(text: str) -> None:
    assert version(text) is None
    assert at_least(text, "1.0") is None
    assert within(text, "1.0") is None


def test_a_post_release_is_not_the_release() -> None:
    assert version("1.3.0") != version("1.3.0.post1")
    assert at_least("1.3.0.post1", "1.3.0") is True


def test_a_span_holds_its_start_and_not_its_end() -> None:
    assert within("0.24.0", "0.24.0", "0.25.0") is True
    assert within("0.25.0", "0.24.0", "0.25.0") is False
    assert within("0.1", "", "") is True
