"""Toy model folders: what a frontend reads, without a weight in them.

The tokenizer is byte-level, with 2,304 entries that each decode to whole text, so that every
made-up token gives a chunk with content.
"""

from __future__ import annotations

import base64
import json
import string
from itertools import product
from pathlib import Path

VOCABULARY = 2304

SPECIAL = (
    *("[BOS]", "[EOS]"),
    *("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|im_end|>"),
)

TEMPLATE = (
    "{% for message in messages %}<|im_{{ message['role'] }}|><|im_middle|>"
    "{{ message['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_assistant|><|im_middle|>{% endif %}"
)

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 131072,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def toy_model(folder: Path) -> Path:
    """Write the five files that a frontend reads; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _json(folder / "config.json", CONFIG)
    _json(folder / "generation_config.json", {"eos_token_id": [1]})
    _json(folder / "tokenizer.json", tokenizer())
    _json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "[BOS]", "eos_token": "[EOS]"},
    )
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def toy_kimi(folder: Path, *, model_type: str = "kimi_k3") -> Path:
    """Write a folder shaped like Kimi K3's: tiktoken only, code files, no template."""
    folder.mkdir(parents=True, exist_ok=True)
    text_config = {**CONFIG, "model_type": "kimi_linear"}
    _json(folder / "config.json", {**CONFIG, "model_type": model_type, "text_config": text_config})
    _json(folder / "generation_config.json", {"eos_token_id": [1]})
    _json(folder / "tokenizer_config.json", {"tokenizer_class": "TikTokenTokenizer"})
    _json(folder / "preprocessor_config.json", {"image_processor_type": "KimiK3Processor"})
    ranks = [bytes([value]) for value in range(256)]
    ranks += [piece.encode() for piece in _pieces() if len(piece) == 2 and piece.isalpha()]
    lines = (f"{base64.b64encode(one).decode()} {rank}\n" for rank, one in enumerate(ranks))
    (folder / "tiktoken.model").write_text("".join(lines))
    for name in ("tokenization_kimi.py", "encoding_k3.py"):
        (folder / name).write_text(f'"""Stands for {name}."""\n')
    return folder


def tokenizer() -> dict[str, object]:
    """Return a byte-level BPE tokenizer in the form of `tokenizer.json`."""
    vocabulary = {text: number for number, text in enumerate((*SPECIAL, *_byte_letters()))}
    merges: list[str] = []
    for piece in _pieces():
        if len(vocabulary) == VOCABULARY:
            break
        vocabulary[piece] = len(vocabulary)
        merges.append(f"{piece[:-1]} {piece[-1]}")
    added = [
        {"id": number, "content": text, "special": True, "single_word": False}
        | dict.fromkeys(("lstrip", "rstrip", "normalized"), False)
        for number, text in enumerate(SPECIAL)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {**level, "use_regex": True},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}
        | dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix"))
        | {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False},
    }


def _byte_letters() -> list[str]:
    """Return the 256 characters that stand for bytes in byte-level BPE, as GPT-2 lays them out."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = (value for value in range(256) if value not in printable)
    return [chr(value) for value in sorted(printable)] + [
        chr(256 + number) for number, _ in enumerate(others)
    ]


def _pieces() -> list[str]:
    """Return texts of two and three letters, each a letter longer than one before it."""
    letters = string.ascii_lowercase
    pairs = ["".join(pair) for pair in product("\u0120" + letters, letters)]
    return pairs + [f"{pair}{letter}" for pair in pairs for letter in letters]


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False))
