"""Lines of a log as a program wrote them: without colours, and without what carried them.

Docker keeps a log as one JSON object a line, Dynamo (DYN_LOGGING_JSONL) and etcd write such lines
themselves; journald, kubectl and compose put a prefix before each.
"""

from __future__ import annotations

import json
import re
from typing import Any

SHOWN = 300
"""Most characters of a line that are shown as evidence."""

LEAD = 80
"""Characters before what was found, in a line that has to be cut."""


def lines_of(log: str) -> list[str]:
    """Return the lines of a log: colours gone, progress bars that rewrite a line cut apart."""
    return [line for raw in re.split(r"\r\n|\n", log) for line in _written(raw)]


def _written(raw: str) -> list[str]:
    text = _COLOUR.sub("", raw)
    carrier, brace, rest = text.partition('{"')
    if brace and text.rstrip().endswith("}"):
        text = carrier + _unwrapped(brace + rest)
    return re.split(r"\r\n|\n|\r", _COLOUR.sub("", text))


def _unwrapped(raw: str) -> str:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):  # a line that only looks like one
        return raw
    if not isinstance(document, dict):
        return raw
    if isinstance(document.get("log"), str):
        return "\n".join(_written(document["log"].rstrip("\r\n")))
    return _plain(document) if _first(document, "message", "msg") else raw


def _plain(document: dict[str, Any]) -> str:  # Any: whatever a program puts into its log
    """Return a structured line as the same program's plain text would have it."""
    head = (
        _first(document, "time", "ts", "timestamp"),
        _first(document, "level").upper(),
        _first(document, "target", "caller"),
    )
    rest = " ".join(f"{key}={value}" for key, value in document.items() if key not in _HEAD)
    return f"{head[0]}  {head[1]} {head[2]}: {_first(document, 'message', 'msg')} {rest}".rstrip()


def _first(document: dict[str, Any], *keys: str) -> str:  # Any: as above
    return next((str(document[key]) for key in keys if document.get(key)), "")


def is_mere(line: str) -> bool:
    """Return whether a program goes on from what a line tells.

    It is told at level INFO or below (by NCCL, vLLM, Python or Rust), is a warning of Python's, or
    is tried again.
    """
    return _MERE.search(_PREFIX.sub("", line)) is not None


def is_void(line: str) -> bool:
    """Return whether a line tells of no fault at all.

    A server repeats what a client has sent, or a program tries what it has others for.
    """
    return _ECHO.search(line) is not None or _TRIED.search(line) is not None


def shown(line: str, at: int = 0) -> str:
    """Return a line as evidence: no blanks around, cut where it is long, with what stands `at`."""
    text = line.strip()
    if len(text) <= SHOWN:
        return text
    start = max(0, at - LEAD) if at > SHOWN - LEAD else 0
    piece = text[start : start + SHOWN - 2]
    return f"{'…' if start else ''}{piece}{'…' if start + len(piece) < len(text) else ''}"


_HEAD = frozenset({"time", "ts", "timestamp", "level", "target", "caller", "message", "msg"})

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_PREFIX = re.compile(
    r"^(\[pod/\S+\] |[\w.-]+-\d+ +\| |\w{3} [ \d]\d \d\d:\d\d:\d\d \S+ [\w.@-]+\[\d+\]: )?"
    r"(\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d) (?=\S+\s+\w+[ :]|\())?"
)
"""What kubectl, compose and journald put before a line, and the time that docker puts there."""

_MERE = re.compile(
    r"\bNCCL (INFO|TRACE)\b| - (INFO|DEBUG|WARNING) - |\b(INFO|DEBUG|WARNING) \d\d-\d\d \d\d:"
    r"|^(\S+(Z|[+-]\d\d:\d\d)\s+)?(INFO|DEBUG|TRACE)[: ]"
    r"|\] WARNING \w+\.py:\d+|\bretrying\b|\bretry_in=|\b[Ff]alling back to\b"
)

_ECHO = re.compile(
    r"Received request \S+: |GenerateReqInput\(|ChatCompletionRequest\(|\bprompt: ?['\"]"
    r"|['\"](messages|prompt|content|input_text)['\"] ?[:=]"
)

_TRIED = re.compile(r"\[Autotuner\]: |Ignore import error when loading")
"""FlashInfer's tuner tries kernels that fail, SGLang all models that it has."""
