"""Streams of chat completions read side by side, each token stamped as it comes. asyncio only.

Kept small so that its own delay is: one task a request, no library between socket and clock.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from ..readiness.stream import Told, data_of, told
from ..serve.gaps import Asked, Recorded, Token
from ..serve.load import Load

PATH = "/v1/chat/completions"
LINE = 1 << 20
TICK_S = 0.005
"""How often the reader looks how late its own clock wakes it."""

ANSWER_S = 900.0
"""Most seconds for one request: a prompt of 300,000 tokens waits in line."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go, and the model they name."""

    host: str
    port: int
    model: str
    secure: bool = False
    name: str = ""  # for the Host header

    @classmethod
    def of(cls, url: str, model: str, *, host: str = "", port: int = 0) -> Place:
        """Return the place of a URL; `host` and `port` stand in for its own where it is led on."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        own = parts.port or (443 if secure else 80)
        named = parts.hostname or ""
        return cls(host or named, port or own, model, secure, f"{named}:{own}")


@dataclass(slots=True)
class LoadRun:
    """One run of a load: what it records, and the words that prompts are made of."""

    load: Load
    place: Place
    prompt: Callable[[int, int], str]  # number and tokens to text
    listen: Callable[[str, float], None] = lambda _text, _share: None
    began: float = 0.0
    tokens: list[Token] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    load_from: float = 0.0

    def now(self) -> float:
        return time.perf_counter() - self.began

    async def go(self) -> Recorded:
        """Run streams alone, then with long prompts; return all that was seen."""
        self.began = time.perf_counter()
        over = asyncio.Event()
        tasks = [asyncio.create_task(self._stream(n, over)) for n in range(self.load.streams)]
        tasks.append(asyncio.create_task(self._tick(over)))
        await self._pass(self.load.idle_s, "streams alone")
        self.load_from = self.now()
        await self._prompts()
        ended = self.now()
        over.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return Recorded(
            tuple(self.tokens), tuple(self.asked), self.load_from, ended, tuple(self.lag)
        )

    async def _pass(self, seconds: float, what: str) -> None:
        ends = self.now() + seconds
        while (left := ends - self.now()) > 0:
            self.listen(what, 1 - left / seconds)
            await asyncio.sleep(min(1.0, left))

    async def _tick(self, over: asyncio.Event) -> None:
        while not over.is_set():
            before = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self.lag.append((time.perf_counter() - before - TICK_S) * 1000)

    async def _stream(self, number: int, over: asyncio.Event) -> None:
        """Keep one answer streaming: a new request as soon as one ends."""
        while not over.is_set():
            text = self.prompt(-1 - number - len(self.asked), self.load.stream_prompt_tokens)
            ended = await self._ask("stream", number, text, 100_000)
            if ended.error:
                await asyncio.sleep(0.5)

    async def _prompts(self) -> None:
        """Send the long prompts: spread evenly over the time, or some at a time in a row."""
        ends = self.now() + self.load.load_s
        pause = self.load.load_s / max(1, self.load.prompts)
        places = asyncio.Semaphore(self.load.at_once or self.load.prompts or 1)
        tasks = []
        for number in range(self.load.prompts):
            await places.acquire()
            if self.now() >= ends:
                places.release()
                break
            tasks.append(asyncio.create_task(self._prompt(number, places)))
            self.listen(f"prompt {number + 1} of {self.load.prompts}", number / self.load.prompts)
            if self.load.at_once is None:
                await asyncio.sleep(pause)
        if self.load.at_once is None:
            await self._pass(max(0.0, ends - self.now()), "streams under load")
        await self._finish(tasks)

    async def _finish(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for prompts that are still read: cut off, they would be no errors and no results."""
        if tasks:
            self.listen("the last prompts", 1.0)
            await asyncio.wait(tasks, timeout=ANSWER_S)

    async def _prompt(self, number: int, places: asyncio.Semaphore) -> None:
        which = number % self.load.distinct if self.load.distinct else number
        text = self.prompt(which, self.load.prompt_tokens)
        try:
            await self._ask("prompt", number, text, self.load.answer_tokens)
        finally:
            places.release()

    async def _ask(self, kind: str, number: int, text: str, tokens: int) -> Asked:
        asked = Asked(kind, number, self.now())
        known, last = Told(), None
        try:
            async for data in chunks(self.place, wish(self.place.model, text, tokens)):
                known = told(known, data)
                if known.error:
                    break
                if known.content:
                    last = self._token(kind, number, last)
                    asked = asked if asked.first is not None else replace(asked, first=last)
        except asyncio.CancelledError:
            self.asked.append(self._ended(asked, known))
            raise
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            known = replace(known, error=str(error) or type(error).__name__)
        ended = self._ended(asked, known)
        if kind == "prompt" and not ended.error and ended.first is None:
            ended = replace(ended, error="the answer has no token")
        self.asked.append(ended)
        return ended

    def _token(self, kind: str, number: int, last: float | None) -> float:
        at = self.now()
        if kind == "stream":
            self.tokens.append(Token(number, at, None if last is None else (at - last) * 1000))
        return at

    def _ended(self, asked: Asked, known: Told) -> Asked:
        return replace(
            asked, ended=self.now(), prompt_tokens=known.prompt_tokens,
            completion_tokens=known.completion_tokens, chunks=known.tokens, error=known.error,
        )  # fmt: skip


def wish(model: str, text: str, tokens: int) -> dict[str, Any]:
    """Return the body of a streamed request that goes on until it has its tokens."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "temperature": 1.0,
    }


async def chunks(place: Place, body: Mapping[str, Any]) -> AsyncIterator[str]:
    """Yield the data of each server-sent event of one answer.

    Raises OSError and ValueError where the connection or the answer is not as it should be.
    """
    ssl = True if place.secure else None
    reader, writer = await asyncio.open_connection(place.host, place.port, limit=LINE, ssl=ssl)
    try:
        writer.write(_request(place, json.dumps(body).encode()))
        await writer.drain()
        status, headers = await _head(reader)
        lines = _lines(reader, chunked="chunked" in headers.get("transfer-encoding", ""))
        if status != 200:
            said = " ".join([line async for line in lines])[:300]
            raise ValueError(f"HTTP {status}: {said}".rstrip(": "))
        async for line in lines:
            data = data_of(line)
            if data is not None:
                yield data
                if data == "[DONE]":
                    return
    finally:
        writer.close()
        with suppress(OSError):
            await asyncio.wait_for(writer.wait_closed(), 1.0)


def _request(place: Place, body: bytes) -> bytes:
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {place.name}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first = (await reader.readline()).decode(errors="replace").split(" ", 2)
    if len(first) < 2 or not first[1].isdecimal():
        raise ValueError("no HTTP answer")
    headers = {}
    while line := (await reader.readline()).decode(errors="replace").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip().lower()
    return int(first[1]), headers


async def _lines(reader: asyncio.StreamReader, *, chunked: bool) -> AsyncIterator[str]:
    """Yield lines of the body; chunks may cut them anywhere."""
    if not chunked:
        while raw := await reader.readline():
            yield raw.decode(errors="replace").strip()
        return
    rest = b""
    while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
        rest += await reader.readexactly(size)
        await reader.readexactly(2)
        *whole, rest = rest.split(b"\n")
        for raw in whole:
            yield raw.decode(errors="replace").strip()
    if rest:
        yield rest.decode(errors="replace").strip()


async def prompt_tokens(place: Place, text: str) -> int | None:
    """Return how many tokens a model counts in a prompt, None where it does not say."""
    known = Told()
    async for data in chunks(place, wish(place.model, text, 1)):
        known = told(known, data)
    if known.error:
        raise ValueError(known.error)
    return known.prompt_tokens
