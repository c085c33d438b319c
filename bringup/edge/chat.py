"""One streamed chat completion, with what it told and how long it took."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from ..core.errors import ToolError
from ..readiness.stages import Chat
from ..readiness.stream import Told, data_of, told
from .http import Opener, connected, direct

PATH = "/v1/chat/completions"


def chat(url: str, wish: Mapping[str, Any], *, seconds: float, opener: Opener = direct) -> Chat:
    """Send a request and read its stream to the end; trouble is told in the answer.

    `seconds` limits the whole. An answer of which not a byte came is `silent`.
    """
    began = time.monotonic()
    try:
        with connected(url, seconds=seconds, opener=opener) as (connection, _):
            body = json.dumps(wish).encode()
            connection.request("POST", PATH, body, {"Content-Type": "application/json"})
            return _read(connection.getresponse(), began, seconds)
    except TimeoutError:
        spent = time.monotonic() - began
        return Chat(0, seconds=spent, error=f"no answer in {spent:.0f} s", silent=True)
    except (OSError, http.client.HTTPException, ToolError) as error:
        said = getattr(error, "message", "") or str(error) or type(error).__name__
        return Chat(0, seconds=time.monotonic() - began, error=said)


def _read(response: http.client.HTTPResponse, began: float, seconds: float) -> Chat:
    if response.status != HTTPStatus.OK:
        said = response.read(4096).decode(errors="replace").strip()
        why = f"HTTP {response.status}: {said}" if said else f"HTTP {response.status}"
        return Chat(response.status, seconds=time.monotonic() - began, error=why[:500])
    known, first = Told(), None
    try:
        for data in _data(response, began + seconds):
            known = told(known, data)
            if known.content and first is None:
                first = time.monotonic() - began
    except TimeoutError:
        known = told(known, json.dumps({"error": "the stream stopped in the middle"}))
    spent = time.monotonic() - began
    return Chat(
        response.status, known.request, known.tokens, known.text, spent, first, known.workers,
        known.error,
    )  # fmt: skip


def _data(response: http.client.HTTPResponse, ends: float) -> Iterator[str]:
    for raw in response:
        data = data_of(raw.decode(errors="replace").strip())
        if data is not None:
            yield data
        if time.monotonic() > ends:
            raise TimeoutError
