"""The terminal is given back as it was, whoever still talks."""

from __future__ import annotations

import io

import pytest

from bringup.core.event import Event
from bringup.report.screen import PeopleScreen

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_thread_that_tells_after_the_end_does_not_hide_the_cursor_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    screen = PeopleScreen(out, io.StringIO())
    screen.tell(Event("b300-04", "probe", "looking"))
    screen.close()
    assert out.getvalue().rfind(SHOW) > out.getvalue().rfind(HIDE) >= 0
    screen.tell(Event("b300-07", "probe", "looking"))
    screen.watch("a view")
    assert out.getvalue().rfind(SHOW) > out.getvalue().rfind(HIDE)
