"""What a frontend's log says of its models: added, or why not. Text and JSON lines alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Cause(Enum):
    """What keeps a frontend from adding a model, as told by its own words."""

    MISSING_FILE = "missing file"
    HUB_NAME = "name of a hub"
    LONGER_FILE = "longer file"
    OTHER_BYTES = "other bytes"
    UNREADABLE_FILE = "unreadable file"
    NO_TEMPLATE = "no template"
    NO_TOKENIZER = "no tokenizer"
    NO_TOKENIZER_CONFIG = "no tokenizer configuration"
    TOKENIZER_TYPE = "tokenizer type"
    NO_END = "no end of sequence"
    CACHE = "unusable cache"
    SELF_HOSTED = "worker's own files"
    INTERFACE = "response interface"
    OTHER = "another cause"


# Wording of 1.3.0.post1 and 1.6.1, each seen in a run (docs/bundle.md#what-the-frontend-says).
_WORDS: tuple[tuple[str, Cause], ...] = (
    (r"creating MDC |\.cache/dynamo/mdc/\S*: .*(os error|denied)", Cause.CACHE),
    (r"hub::from_hf\(/", Cause.MISSING_FILE),
    (r"custom file \S+ not reachable", Cause.MISSING_FILE),
    (r"hub::from_hf\(", Cause.HUB_NAME),
    (r"fetching https?://|https?://\S+ (reports|body exceeds)", Cause.SELF_HOSTED),
    (r"exceeds cap", Cause.LONGER_FILE),
    (r"checksum mismatch for https?:", Cause.SELF_HOSTED),
    (r"checksum mismatch", Cause.OTHER_BYTES),
    (r"(reading metadata for|copying) /.*(denied|os error)", Cause.UNREADABLE_FILE),
    (r"chat_template field is required", Cause.NO_TEMPLATE),
    (r"chat pipeline requires preprocessed routing", Cause.NO_TOKENIZER),
    (r"does not contain a prompt formatter", Cause.NO_TOKENIZER_CONFIG),
    (r"Unsupported tiktoken model_type", Cause.TOKENIZER_TYPE),
    (r"missing eos_token_id", Cause.NO_END),
    (r"Interface not found|Failed to resolve local IP", Cause.INTERFACE),
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt of a frontend to add a model; `error` is "" where it was added."""

    model: str
    error: str = ""

    @property
    def cause(self) -> Cause:
        found = (cause for words, cause in _WORDS if re.search(words, self.error))
        return next(found, Cause.OTHER)


def attempts(log: str) -> Iterator[Tried]:
    """Yield what the log says of models, in its order; all other lines are passed over."""
    for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines():
        tried = _from_json(line) if '"message":' in line else _from_text(line)
        if tried is not None:
            yield tried


def last_attempt(log: str, model: str, *, workers: int = 1) -> Tried | None:
    """Return what became of a model: its last failure that still counts, else its last adding.

    A frontend tries once for each worker, and the log does not say which: a failure counts until
    as many workers as there are have been added after it. None: not a word on the model.
    """
    last: Tried | None = None
    added = 0
    for tried in attempts(log):
        if tried.model != model:
            continue
        added = 0 if tried.error else added + 1
        if tried.error or last is None or not last.error or added >= workers:
            last = tried
    return last


_FAILED = r"Error adding model from discovery|Model materialization failed"
_ADDED = r"added model\b|Committed discovered model group"


def _from_text(line: str) -> Tried | None:
    name = re.search(r'model_name="([^"]*)"|group=\["([^"]*)"', line)
    model = (name[1] or name[2] or "") if name else ""
    if re.search(_FAILED, line):
        return Tried(model, line.partition('error="')[2].rstrip('"') or line)
    return Tried(model) if model and re.search(_ADDED, line) else None


def _from_json(line: str) -> Tried | None:
    try:
        row = json.loads(line[line.index("{") :])
        message = str(row.get("message", ""))
    except (ValueError, AttributeError):
        return None
    if re.match(_FAILED, message):
        return Tried(_model(row), str(row.get("error") or message))
    return Tried(_model(row)) if re.match(_ADDED, message) else None


def _model(row: dict[str, Any]) -> str:
    if row.get("model_name"):
        return str(row["model_name"])
    first = re.match(r'\["([^"]*)"', str(row.get("group", "")))
    return first[1] if first else ""
