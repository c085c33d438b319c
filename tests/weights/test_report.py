"""What people see of a copy."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from bringup.core.event import Event
from bringup.report.weights import BOARD, Line, board_view, copied_view


def text(view: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(view)
    return out.getvalue()


def test_a_view_of_many_hosts_fits_a_screen_and_shows_those_at_work() -> None:
    latest = {f"h{n:02}": Event(f"h{n:02}", "copy", "done", is_end=True) for n in range(40)}
    latest["h39"] = Event("h39", "copy", "1.0 GB of 2.0 GB from h1", 0.5)
    said = text(board_view(latest))
    assert said.count("\n") == BOARD + 1
    assert "h39  50%  1.0 GB of 2.0 GB from h1" in said
    assert "and 16 more" in said


def test_those_that_sent_most_are_named_first() -> None:
    by = {f"h{n}": n for n in range(1, 8)}
    said = text(copied_view([Line("h9", "/m", 2, 28, 4.0, by)]))
    assert "7 B from h7, 6 B from h6, 5 B from h5, 4 B from h4 and 3 others" in " ".join(
        said.split()
    )
