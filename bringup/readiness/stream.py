"""What a streamed chat completion says, chunk by chunk: tokens, the request's id, who worked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

WISH: Mapping[str, Any] = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "nvext": {"extra_fields": ["worker_id"]},  # every chunk then names the workers
}


def request(model: str, text: str, tokens: int, *, names_workers: bool = True) -> dict[str, Any]:
    """Return the body of a streamed chat completion."""
    wish = {k: v for k, v in WISH.items() if names_workers or k != "nvext"}
    message = {"role": "user", "content": text}
    return {"model": model, "messages": [message], "max_tokens": tokens, **wish}


@dataclass(frozen=True, slots=True)
class Told:
    """All that a stream has told so far. `content` says whether the last chunk had any."""

    request: str = ""
    tokens: int = 0
    content: bool = False
    text: str = ""
    finish: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    workers: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    done: bool = False


def data_of(line: str) -> str | None:
    """Return the data of one line of server-sent events, None for other lines."""
    return line[5:].strip() if line.startswith("data:") else None


def told(before: Told, data: str) -> Told:
    """Return what is known after one more piece of data."""
    if data == "[DONE]":
        return replace(before, done=True, content=False)
    try:
        chunk = json.loads(data)
    except ValueError:
        return replace(before, error=f"no JSON in the stream: {data[:200]}", content=False)
    if not isinstance(chunk, dict) or "error" in chunk:
        return replace(before, error=_error(chunk, data), content=False)
    text = "".join(_content(chunk))
    usage = chunk.get("usage") or {}
    return replace(
        before,
        request=before.request or str(chunk.get("id", "")).removeprefix("chatcmpl-"),
        tokens=before.tokens + bool(text),
        content=bool(text),
        text=(before.text + text)[-2000:],
        finish=next(_finishes(chunk), before.finish),
        prompt_tokens=usage.get("prompt_tokens", before.prompt_tokens),
        completion_tokens=usage.get("completion_tokens", before.completion_tokens),
        workers=_workers(chunk) or before.workers,
    )


def _error(chunk: object, data: str) -> str:
    error = chunk.get("error") if isinstance(chunk, dict) else None
    if isinstance(error, dict):
        return str(error.get("message") or error)
    return str(error or data[:200])


def _content(chunk: Mapping[str, Any]) -> Iterator[str]:
    """Text of answer and of thinking alike: both are tokens that a reader waits for."""
    for choice in chunk.get("choices") or ():
        delta = choice.get("delta") or {}
        for key in ("content", "reasoning_content", "reasoning"):
            if isinstance(delta.get(key), str):
                yield delta[key]
        if isinstance(choice.get("text"), str):
            yield choice["text"]


def _finishes(chunk: Mapping[str, Any]) -> Iterator[str]:
    for choice in chunk.get("choices") or ():
        if choice.get("finish_reason"):
            yield str(choice["finish_reason"])


def _workers(chunk: Mapping[str, Any]) -> dict[str, int]:
    """Return instance ids by role, as ``nvext.worker_id`` gives them."""
    ids = ((chunk.get("nvext") or {}).get("worker_id")) or {}
    return {
        role: int(ids[f"{role}_worker_id"])
        for role in ("prefill", "decode")
        if isinstance(ids.get(f"{role}_worker_id"), int)
    }
