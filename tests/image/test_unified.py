"""Diffs are applied to the letter or not at all."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.image.unified import PatchError, apply, parse

OLD = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
DIFF = """\
diff --git a/f.py b/f.py
index 123..456 100644
--- a/f.py
+++ b/f.py
@@ -2,4 +2,4 @@ one
 two
-three
+THREE
 four
 five
"""

LINE = st.sampled_from(["a", "b", "-- c", "++ d", "", " e", "@@ -1 +1 @@", "f\x0cg", "h\r"])


def _diff(old: list[str], new: list[str]) -> str:
    """Write a diff as diff(1) does, with its mark for a missing line end."""
    lines = difflib.unified_diff(old, new, "a/f", "b/f", n=2)
    mark = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + mark for line in lines)


def _text(lines: list[str], ends: bool) -> list[str]:
    whole = [line + "\n" for line in lines]
    if whole and not ends:
        whole[-1] = whole[-1].removesuffix("\n") or "x"
    return whole


@settings(max_examples=300, deadline=None)
@given(st.lists(LINE), st.lists(LINE), st.booleans(), st.booleans())
def test_any_diff_turns_old_into_new(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    before, after = _text(old, old_ends), _text(new, new_ends)
    if before == after:
        return
    (diff,) = parse(_diff(before, after))
    assert apply(diff, "".join(before).encode()).decode() == "".join(after)


def test_fitting_diff_is_applied() -> None:
    (diff,) = parse(DIFF)
    assert apply(diff, OLD) == OLD.replace(b"three", b"THREE")


def test_context_that_differs_is_refused_with_both_lines() -> None:
    (diff,) = parse(DIFF)
    with pytest.raises(PatchError, match=r"f\.py:4 reads 'FOUR', the diff expects 'four'"):
        apply(diff, OLD.replace(b"four", b"FOUR"))


def test_moved_context_is_refused_although_it_would_fit_below() -> None:
    (diff,) = parse(DIFF)
    with pytest.raises(PatchError):
        apply(diff, b"zero\n" + OLD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no unified diff"),
        (DIFF.rsplit("\n", 3)[0], "cut off"),
        (DIFF.replace("-2,4 +2,4", "-2,4 +2,3"), "counts"),
        ("--- a/f\n+++ b/f\n", "no hunk"),
        ("--- a/f\nx\n", "without"),
        ("GIT binary patch\n", "more than a unified diff"),
        ("rename from a\n" + DIFF, "more than a unified diff"),
    ],
)
def test_diff_that_does_not_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        parse(text)
