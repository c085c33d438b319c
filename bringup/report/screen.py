"""The one door to the terminal: a live view for people, plain lines elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeAlias

from ..core.document import plain
from ..core.errors import Exit, ToolError
from ..core.event import Event

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.status import Status

Document: TypeAlias = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


class Screen(Protocol):
    """Where a verb shows what it does. People see `show`, machines see `emit`."""

    def show(self, *views: RenderableType) -> None:
        """Show text, tables and the like to people."""
        ...

    def emit(self, document: Document) -> None:
        """Give one JSON object, on one line, to machines; a function is asked only for them."""
        ...

    def tell(self, event: Event) -> None:
        """Tell of progress."""
        ...

    def watch(self, view: RenderableType) -> None:
        """Show a view that stands in the place of the last one while work goes on."""
        ...

    def fail(self, *errors: ToolError) -> None:
        """Show errors in full; those that differ only in their host once, for people."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


WHOLE = 10_000
"""Columns of what goes to a file and must stay on its line, so that people can search for it."""


class JsonScreen:
    """One object a line on standard output; progress and errors are objects too."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._lock = threading.Lock()

    def show(self, *views: RenderableType) -> None:
        """Nothing: views are for people."""

    def emit(self, document: Document) -> None:
        told = document() if callable(document) else document
        line = json.dumps(plain(told), ensure_ascii=False) + "\n"
        with self._lock:
            self._out.write(line)
            self._out.flush()

    def tell(self, event: Event) -> None:
        self.emit({"schema": "bringup.event/1", **plain(event)})

    def watch(self, view: RenderableType) -> None:
        """Nothing: events tell machines."""

    def fail(self, *errors: ToolError) -> None:
        for error in errors:
            self.emit(error_document(error))

    def close(self) -> None:
        """Nothing to restore."""


class PeopleScreen:
    """Rich on a terminal; elsewhere plain lines, those of progress on standard error."""

    def __init__(self, out: TextIO | None = None, error: TextIO | None = None) -> None:
        self._out, self._error = out or sys.stdout, error or sys.stderr
        self._console: Console | None = None
        self._status: Status | None = None
        self._live: Live | None = None
        self._doing: dict[str, str] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def console(self) -> Console:
        if self._console is None:
            from rich.console import Console

            width = None if self._out.isatty() else 100
            self._console = Console(file=self._out, width=width, highlight=False, soft_wrap=False)
        return self._console

    def show(self, *views: RenderableType) -> None:
        with self._lock:
            if self._live is not None:
                self._stop()
            for view in views:
                self._print(view)

    def _print(self, view: RenderableType) -> None:
        """Print; where lines go to a file, without the blanks that tables end in.

        Plain text goes out as it is: no markup, no wrapping.
        """
        if isinstance(view, str):
            self._out.write(f"{view}\n")
            self._out.flush()  # before a child's lines, where both go to one file
            return
        if self._out.isatty():
            self.console.print(view, crop=False)
            return
        with self.console.capture() as captured:
            self.console.print(view, crop=False)
        lines = captured.get().split("\n")
        self._out.write("\n".join(line.rstrip() for line in lines))
        self._out.flush()

    def emit(self, document: Document) -> None:
        """Nothing: documents are for machines."""

    def tell(self, event: Event) -> None:
        with self._lock:
            if self._out.isatty():
                self._update(event)
            else:
                share = "" if event.share is None else f" {event.share:.0%}"
                self._error.write(f"{event.host}  {event.stage}{share}  {event.text}\n")
                self._error.flush()

    def _update(self, event: Event) -> None:
        if self._live is not None or self._closed:  # the view that is watched tells more
            return
        if event.is_end:
            self._doing.pop(event.host, None)
        else:
            self._doing[event.host] = f"{event.stage} {event.text}".strip()
        if self._status is None:
            self._status = self.console.status("")
            self._status.start()
        self._status.update(_folded(self._doing))
        if not self._doing:
            self._stop()

    def watch(self, view: RenderableType) -> None:
        """Redraw one live view on a terminal; elsewhere lines are told as they come."""
        with self._lock:
            if not self._out.isatty() or self._closed:
                return
            if self._live is None:
                from rich.live import Live

                self._stop()
                self._live = Live(console=self.console, auto_refresh=False, transient=True)
                self._live.start()
            self._live.update(view, refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._status is not None:
            self._status.stop()
            self._status = None

    def fail(self, *errors: ToolError) -> None:
        if not errors:
            return
        from rich.console import Console

        from .error import errors_view

        with self._lock:
            self._stop()
            width = None if self._error.isatty() else WHOLE
            console = Console(file=self._error, width=width, highlight=False)
            with console.capture() as captured:
                console.print(errors_view(errors))
            lines = captured.get().split("\n")
            self._error.write("\n".join(line.rstrip() for line in lines))
            self._error.flush()

    def close(self) -> None:
        """Give the cursor back; a thread that is still at work shows nothing any more."""
        with self._lock:
            self._closed = True
            self._stop()


def _folded(doing: Mapping[str, str]) -> str:
    """Return one line for all hosts at work: how many do what."""
    stages: dict[str, list[str]] = {}
    for host, what in doing.items():
        stages.setdefault(what, []).append(host)
    parts = (
        f"{what}: {', '.join(hosts) if len(hosts) < 4 else f'{len(hosts)} hosts'}"
        for what, hosts in sorted(stages.items())
    )
    return " · ".join(parts)


def error_document(error: ToolError) -> dict[str, Any]:
    """Return an error as plain data."""
    return {
        "schema": "bringup.error/1",
        "host": error.host,
        "step": error.step,
        "error": type(error).__name__,
        "message": error.message,
        "said": error.said,
        "remedy": error.remedy,
        "exit": int(error.code),
        **{name: getattr(error, name) for name in ("ran", "exit_code") if hasattr(error, name)},
    }


def screen_for(*, as_json: bool) -> Screen:
    """Return the screen that a run wants."""
    return JsonScreen() if as_json else PeopleScreen()


__all__ = ["Exit", "JsonScreen", "PeopleScreen", "Screen", "error_document", "screen_for"]
