"""Verbs for those who work on bringup itself."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit
from ..core.verb import Help, Verb
from ..report.screen import Screen


def test(
    screen: Screen,
    *,
    only: Annotated[str, Help("run only this part: lint, types or tests")] = "",
    install: Annotated[bool, Help("as root on Debian: install what the tests need")] = True,
    select: Annotated[str, Help("pytest expression (-k) of the tests to run")] = "",
) -> Exit:
    """Prove everything: format, lint, types, shell, tests.

    As root on Debian or Ubuntu, missing packages that the tests need are installed first. Without
    root, tests that need it are left out, and the end says which and why.
    """
    from ..flow.develop import prove

    return prove(screen.show, only=only, install=install, select=select)


VERBS = (Verb("test", test),)
