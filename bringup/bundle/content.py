"""What the files of a model folder say: its configuration, its tokenizer, its template."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..core.reading import Absent, Known, Reading, Unknown, value_of
from .manifest import Identity
from .selection import Left, Why

READ = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
"""Files whose content decides; of all others the name is enough."""

TEMPLATES = ("chat_template.jinja", "chat_template.json")


class TokenizerKind(Enum):
    """What a frontend builds the tokenizer from, in the order in which it looks."""

    JSON = "tokenizer.json"
    TIKTOKEN = "tiktoken"


@dataclass(frozen=True, slots=True)
class Content:
    """A model folder as far as a frontend cares. Documents are parsed JSON objects."""

    names: frozenset[str]
    documents: Mapping[str, Reading[Mapping[str, Any]]]
    pointers: tuple[Left, ...] = ()
    left: tuple[Left, ...] = ()

    def document(self, name: str) -> Reading[Mapping[str, Any]]:
        return self.documents.get(name, Absent(f"no {name}"))

    def says(self, name: str, key: str) -> Any:  # noqa: ANN401 - a value of JSON
        """Return a value of a document, or None."""
        return (value_of(self.document(name)) or {}).get(key)

    @property
    def model_type(self) -> str:
        return str(self.says("config.json", "model_type") or "")

    @property
    def architecture(self) -> str:
        names = self.says("config.json", "architectures")
        return str(names[0]) if isinstance(names, list) and names else ""

    @property
    def tokenizer(self) -> tuple[TokenizerKind, str] | None:
        """The kind and the file's name: tokenizer.json, tiktoken.model, a single *.tiktoken."""
        others = sorted(n for n in self.names if n.endswith(".tiktoken") and "/" not in n)
        if "tokenizer.json" in self.names:
            return TokenizerKind.JSON, "tokenizer.json"
        if "tiktoken.model" in self.names:
            return TokenizerKind.TIKTOKEN, "tiktoken.model"
        return (TokenizerKind.TIKTOKEN, others[0]) if len(others) == 1 else None

    @property
    def template(self) -> str:
        """Where the chat template is, or ""."""
        files = (name for name in TEMPLATES if name in self.names)
        inside = "chat_template in tokenizer_config.json"
        return next(files, inside if self.says("tokenizer_config.json", "chat_template") else "")

    @property
    def end_of_sequence(self) -> str:
        """Where an end-of-sequence token is named, or ""."""
        nested = self.says("config.json", "text_config")
        places = (
            ("generation_config.json", self.says("generation_config.json", "eos_token_id")),
            ("config.json", self.says("config.json", "eos_token_id")),
            ("text_config in config.json", nested.get("eos_token_id") if nested else None),
            ("tokenizer_config.json", self.says("tokenizer_config.json", "eos_token")),
            ("special_tokens_map.json", self.says("special_tokens_map.json", "eos_token")),
        )
        return next((place for place, value in places if value not in (None, "", [])), "")

    @property
    def code_files(self) -> tuple[str, ...]:
        """Python files that the tokenizer's ``auto_map`` names."""
        mapped = self.says("tokenizer_config.json", "auto_map")
        rows = mapped.values() if isinstance(mapped, dict) else (mapped or ())
        words = (word for row in rows for word in (row if isinstance(row, list) else [row]))
        local = (word for word in words if isinstance(word, str) and "--" not in word)
        return tuple(sorted({word.partition(".")[0] + ".py" for word in local}))


def read_content(
    names: Iterable[str], files: Mapping[str, bytes], left: Iterable[Left] = ()
) -> Content:
    """Return what a folder says, given its names and the bytes of those in `READ` that it has."""
    stayed = tuple(left)
    return Content(
        frozenset(names),
        {name: _document(name, files[name]) for name in READ if name in files},
        tuple(one for one in stayed if one.why is Why.POINTER),
        stayed,
    )


def identity(content: Content, config: bytes, revision: str) -> Identity:
    """Return which model this is, as far as its own files say."""
    return Identity(
        hashlib.sha256(config).hexdigest() if config else "",
        content.model_type,
        content.architecture,
        revision,
    )


def _document(name: str, data: bytes) -> Reading[Mapping[str, Any]]:
    try:
        document = json.loads(data)
    except ValueError as error:
        return Unknown(f"{name} is no JSON: {error}")
    if not isinstance(document, dict):
        return Unknown(f"{name} holds no JSON object")
    return Known(document)
