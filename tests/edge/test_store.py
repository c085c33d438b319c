"""What the controller keeps, and what it says where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup.core.errors import UsageError
from bringup.edge.store import Store, save_document, write_atomic

AT = "2026-01-02T03:04:05Z"


def test_a_place_that_cannot_be_written_is_told_as_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write .*file/below"):
        write_atomic(tmp_path / "file" / "below", b"")


def test_facts_are_kept_with_their_moment(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save_facts("b300-04", "raw", stamp=AT)
    assert store.seen("b300-04") == AT


def test_a_host_that_was_never_seen_has_no_moment(tmp_path: Path) -> None:
    assert Store(tmp_path).seen("b300-04") == ""


def test_receipts_of_one_second_stay_in_their_order(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(12):
        save_document(store.receipt_file("b300-04", stamp=AT), {"number": number})
    later = store.receipt_file("b300-04", stamp="2026-01-02T03:04:06Z")
    save_document(later, {"number": 12})
    told = [json.loads(path.read_text())["number"] for path in store.receipts("b300-04")]
    assert told == list(range(13))
