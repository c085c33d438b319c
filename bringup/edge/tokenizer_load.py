"""Loads a bundle's tokenizer and template for real, and sends a sample there and back.

Needs the extra `tokenizer` (tokenizers, tiktoken). Without it there is `load_command`: the same
proof inside the image that will serve.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

from ..core.errors import UsageError

SAMPLE = "Bring up the host, then ask: 3 × 7 = 21? Größe, 你好, 🙂\n\tdone."

MISSING = "install it with: pip install 'bringup[tokenizer]'; or prove it in the image instead"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was proven: the tokenizer's kind, the tokens of the sample, the template's text."""

    kind: str
    tokens: int
    prompt: str = ""


def load_tokenizer(files: Mapping[str, bytes]) -> Loaded:
    """Load the tokenizer and the template of a bundle.

    Raises UsageError where they do not load, the sample comes back altered, or a package is not
    installed.
    """
    if "tokenizer.json" in files:
        kind, there, back = _from_json(files["tokenizer.json"])
    else:
        name = next((n for n in sorted(files) if _is_tiktoken(n)), None)
        if name is None:
            raise UsageError("cannot load a tokenizer: no tokenizer.json, no tiktoken.model")
        kind, there, back = _from_tiktoken(name, files[name])
    tokens = there(SAMPLE)
    again = back(tokens)
    if again != SAMPLE:
        raise UsageError(
            f"cannot trust the {kind} tokenizer: {SAMPLE!r} comes back as {again!r}",
            remedy="compare the file with the model's own repository",
        )
    return Loaded(kind, len(tokens), _prompt(files))


_There = Callable[[str], list[int]]
_Back = Callable[[list[int]], str]


def _is_tiktoken(name: str) -> bool:
    return name == "tiktoken.model" or (name.endswith(".tiktoken") and "/" not in name)


def _from_json(data: bytes) -> tuple[str, _There, _Back]:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UsageError(
            "cannot load tokenizer.json: no package tokenizers", remedy=MISSING
        ) from error
    try:
        tokenizer = Tokenizer.from_str(data.decode())
    except Exception as error:
        raise UsageError(f"cannot load tokenizer.json: {error}") from error

    def there(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    return "tokenizers", there, lambda ids: str(tokenizer.decode(ids, skip_special_tokens=False))


def _from_tiktoken(name: str, data: bytes) -> tuple[str, _There, _Back]:
    """The splitting pattern is the model's own code's; any will do to prove the vocabulary."""
    try:
        import tiktoken
    except ImportError as error:
        raise UsageError(f"cannot load {name}: no package tiktoken", remedy=MISSING) from error
    encoding = tiktoken.Encoding(
        name=name, pat_str=r"\s+|\S+", mergeable_ranks=_ranks(name, data), special_tokens={}
    )
    return "tiktoken", encoding.encode, encoding.decode


def _ranks(name: str, data: bytes) -> dict[bytes, int]:
    """Return the vocabulary: a line a token, base64 and rank."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise UsageError(f"cannot load {name}: line {number} is no token and rank") from error
    lacking = [value for value in range(256) if bytes((value,)) not in ranks]
    if lacking or len(set(ranks.values())) != len(ranks):
        what = f"{len(lacking)} single bytes lack a token" if lacking else "two tokens share a rank"
        raise UsageError(f"cannot trust {name}: {what}")
    return ranks


def _prompt(files: Mapping[str, bytes]) -> str:
    """Return what the chat template makes of one message; "" where there is no template."""
    template = _template(files)
    if not template:
        return ""
    try:
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
        )
        environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda _: "2026-01-01"}
        messages = [{"role": "user", "content": "hello"}]
        text = environment.from_string(template).render(
            messages=messages, add_generation_prompt=True, bos_token="", eos_token="", tools=None
        )
    except (jinja2.TemplateError, TypeError, ValueError) as error:
        raise UsageError(f"cannot render the chat template: {error}") from error
    return text


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _template(files: Mapping[str, bytes]) -> str:
    if "chat_template.jinja" in files:
        return files["chat_template.jinja"].decode(errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = _document(files.get(name, b"{}")).get("chat_template")
        if isinstance(found, str):
            return found
        if isinstance(found, list) and found:  # several by name; the default one is first
            return str(found[0].get("template", ""))
    return ""


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
