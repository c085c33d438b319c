"""One chat completion on its way, beside the looks."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from ..edge.chat import chat
from ..readiness.stages import Chat
from .look import Looker


@dataclass(slots=True)
class Request:
    """One chat completion on its way, beside the looks; and what workers had counted before."""

    looker: Looker
    wish: dict[str, object]
    seconds: float
    before: dict[str, float | None] = field(default_factory=dict)
    answer: Chat | None = None
    ended: float = 0.0

    def send(self) -> Request:
        """Begin; the answer comes from a thread of its own."""
        self.before = self.looker.counters(asked=False)
        threading.Thread(target=self._run, name="chat", daemon=True).start()
        return self

    def _run(self) -> None:
        try:
            url, opener = self.looker.frontend, self.looker.opener()
            answer = chat(url, self.wish, seconds=self.seconds, opener=opener)
        except Exception as error:  # noqa: BLE001 - a thread's own fault must not end in silence
            answer = Chat(0, error=f"{type(error).__name__}: {error}")
        self.ended = time.monotonic()
        self.answer = answer
