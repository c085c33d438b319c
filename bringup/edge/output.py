"""What a command says: kept up to a cap, and cut into lines for whoever follows it."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from ..core.remote import Lines

CAP_BYTES = 4 * 1024 * 1024
"""Most bytes kept of one stream: the first half and the last half of what came."""

LONG_LINE = 64 * 1024
"""A line is passed on at this length though it has not ended (progress bars never end theirs)."""


class Output:
    """One stream of bytes: bounded memory, undecodable bytes replaced."""

    def __init__(
        self, cap_bytes: int = CAP_BYTES, on_line: Callable[[str], None] | None = None
    ) -> None:
        self._half = max(1, cap_bytes // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._on_line = on_line
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines = Lines()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._on_line is not None:
            self._follow(self._decoder.decode(data))

    def end(self) -> None:
        """Pass on a last line that has no newline."""
        if self._on_line is not None:
            self._follow(self._decoder.decode(b"", final=True))
            self._flush()

    def _follow(self, text: str) -> None:
        assert self._on_line is not None
        for line in self._lines.feed(text):
            self._on_line(line)
        if len(self._lines.rest) > LONG_LINE:
            self._flush()

    def _flush(self) -> None:
        rest, self._lines.rest = self._lines.rest, ""
        if rest and self._on_line is not None:
            self._on_line(rest)

    def text(self) -> str:
        """Return what was kept, with a line that says how much was left out."""
        tail = self._tail[-self._half :]
        cut = self.total - len(self._head) - len(tail)
        note = f"\n[{cut} bytes left out here]\n".encode() if cut else b""
        return bytes(self._head + note + tail).decode("utf-8", "replace")
