"""What both doors do with a parsed command: make the screen, act, turn errors into exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..core.errors import Exit, Interrupted, ToolError
from ..core.verb import Help, Option, Verb, arguments, options
from ..report.screen import Screen, screen_for
from ..verbs.common import tell_cost

COMMON = (
    Option("json", bool, False, Help("print JSON, one object a line, instead of text")),
    Option("debug", bool, False, Help("show the traceback of an error")),
)
"""Options of every verb, added by the doors."""

STATS = Option(
    "stats", bool, False, Help("tell connections, commands, round trips and bytes of every host")
)
"""An option of every verb that may contact hosts."""


def offered(verb: Verb) -> tuple[Option, ...]:
    """Return all options of a verb: its own, and those that the doors add."""
    return (*options(verb), *COMMON, *((STATS,) if verb.contacts_hosts else ()))


def perform(verb: Verb, values: Mapping[str, Any]) -> int:
    """Run a verb with parsed values and return its exit code; every ToolError becomes one."""
    _speak_anywhere(as_json=bool(values.get("json")))
    screen = screen_for(as_json=bool(values.get("json")))
    given = {name: _frozen(value) for name, value in values.items()}
    try:
        with _stopped_alike():
            return int(verb.act(screen, **arguments(verb, given)))
    except ToolError as error:
        return _failed(screen, error, debug=bool(values.get("debug")))
    except KeyboardInterrupt:
        what_next = "run the same command again: what was done already is found and kept"
        return _failed(screen, Interrupted("interrupted", remedy=what_next), debug=False)
    except BrokenPipeError:  # as under `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    finally:
        if values.get("stats"):
            tell_cost(screen)
        screen.close()


@contextmanager
def _stopped_alike() -> Iterator[None]:
    """Let SIGTERM, and a terminal that goes away, end a run as Ctrl-C does: told and cleared up."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    ours = [one for one in numbers if signal.getsignal(one) is signal.SIG_DFL and _is_main()]
    for one in ours:
        signal.signal(one, stop)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _speak_anywhere(*, as_json: bool) -> None:
    """Print on terminals of any encoding: JSON is UTF-8, other text loses what cannot be shown."""
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if as_json:
            stream.reconfigure(encoding="utf-8")
        else:
            stream.reconfigure(errors="replace")


def _failed(screen: Screen, error: ToolError, *, debug: bool) -> int:
    screen.fail(error)
    if debug:
        traceback.print_exception(error)
    return int(error.code)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


__all__ = ["COMMON", "Exit", "offered", "perform"]
