"""Which files go into a bundle."""

from __future__ import annotations

import pickle

import pytest

from bringup.bundle.selection import (
    COUNT_LIMIT,
    FILE_LIMIT,
    Candidate,
    Kind,
    Why,
    select,
)

from .folders import LFS_POINTER, safetensors

KIMI_K3 = (
    *("config.json", "generation_config.json", "preprocessor_config.json"),
    *("tokenizer_config.json", "tiktoken.model", "model.safetensors.index.json"),
    *("configuration_kimi_k3.py", "modeling_kimi_k3.py", "modeling_kimi_linear.py"),
    *("tokenization_kimi.py", "encoding_k3.py", "kimi_k3_processor.py"),
    *("kimi_k3_vision_processing.py", "media_utils.py"),
)


def why(candidate: Candidate) -> Why | None:
    selection = select([candidate])
    return selection.left[0].why if selection.left else None


def test_every_file_of_kimi_k3_but_its_weights_is_taken() -> None:
    shards = [f"model-{number:05}-of-00096.safetensors" for number in range(1, 97)]
    selection = select(Candidate(name, 1000) for name in (*KIMI_K3, *shards))
    assert {candidate.name for candidate in selection.taken} == set(KIMI_K3)
    assert {left.why for left in selection.left} == {Why.WEIGHT_NAME}


@pytest.mark.parametrize(
    "name",
    [
        *("chat_template.jinja", "chat_template.json", "tokenizer.json", "tokenizer.model"),
        *("vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json"),
        *("qwen.tiktoken", "README.md", "LICENSE", ".gitattributes", "assets/logo.svg"),
    ],
)
def test_file_that_is_no_weight_is_taken(name: str) -> None:
    assert why(Candidate(name, 100, b"text")) is None


@pytest.mark.parametrize(
    "name",
    ["a.safetensors", "A.SafeTensors", "pytorch_model.bin", "x.gguf", "sub/consolidated.pth"],
)
def test_name_of_weights_stays_out(name: str) -> None:
    assert why(Candidate(name, 100, b"text")) is Why.WEIGHT_NAME


def test_file_above_the_limit_stays_out_whatever_its_name() -> None:
    assert why(Candidate("tokenizer.json", FILE_LIMIT + 1, b"{")) is Why.WEIGHT_SIZE
    assert why(Candidate("tokenizer.json", FILE_LIMIT, b"{")) is None


@pytest.mark.parametrize(
    "head",
    [
        safetensors(),
        b"GGUF\x03\0\0\0",
        pickle.dumps({"w": 1}, protocol=2),
        pickle.dumps({"w": 1}, protocol=5),
        b"PK\x03\x04 a PyTorch file",
        b"\x93NUMPY\x01\0",
        b"\x89HDF\r\n\x1a\n",
        b"\0\0\0\0TFL3",
    ],
)
def test_weights_under_an_innocent_name_stay_out(head: bytes) -> None:
    assert why(Candidate("config.json", 10_000, head)) is Why.WEIGHT_CONTENT


@pytest.mark.parametrize("head", [LFS_POINTER, b"/annex/objects/SHA256E-s100--abc.json\n"])
def test_pointer_is_told_from_the_file_it_stands_for(head: bytes) -> None:
    assert why(Candidate("tokenizer.json", len(head), head)) is Why.POINTER


@pytest.mark.parametrize("head", [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", bytes(257) + b"ustar"])
def test_archive_stays_out(head: bytes) -> None:
    assert why(Candidate("extra", 1000, head)) is Why.ARCHIVE


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.FILE])
def test_what_is_no_file_inside_the_folder_stays_out(kind: Kind) -> None:
    assert why(Candidate("tokenizer.json", 100, b"{", kind)) is Why.KIND


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\0b"])
def test_name_that_leads_out_stays_out(name: str) -> None:
    assert why(Candidate(name, 1, b"x")) is Why.NAME


def test_manifest_of_an_earlier_bundle_stays_out() -> None:
    assert why(Candidate(".bringup-bundle.json", 1, b"{")) is Why.NAME


def test_text_that_begins_with_eight_bytes_and_a_brace_is_no_safetensors() -> None:
    assert why(Candidate("note.txt", 100, b"12345678{and more")) is None


def test_folder_with_too_many_files_is_called_no_model_folder() -> None:
    selection = select(Candidate(f"{number}.txt", 1) for number in range(COUNT_LIMIT + 1))
    assert "more than" in selection.excess
