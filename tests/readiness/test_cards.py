"""Cards and instances as real releases of Dynamo wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup.core.reading import Known, Unknown
from bringup.readiness.cards import (
    Announced,
    ModelCard,
    Where,
    key_of_file,
    parse_card,
    read_discovery,
)

HERE = Path(__file__).parent


def announced(version: str) -> Announced:
    document = json.loads((HERE / f"discovery-{version}.json").read_text())
    return read_discovery((key, json.dumps(value).encode()) for key, value in document.items())


def card(version: str, name: str, worker_type: str = "aggregated") -> ModelCard:
    found = [c for c in announced(version).cards if (c.name, c.worker_type) == (name, worker_type)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("version", ["1.3.0.post1", "1.6.1"])
def test_every_card_of_a_release_is_understood(version: str) -> None:
    assert announced(version).unreadable == ()
    assert announced(version).cards


def test_prefill_card_says_where_the_cache_is_fetched_and_whom_it_needs() -> None:
    prefill = card("1.3.0.post1", "kimi-k3-ultrafast", "prefill")
    assert prefill.component == "prefill"
    assert prefill.needs == (("decode",),)
    assert prefill.bootstrap == ("127.0.0.1", 18507)
    assert prefill.source_path == "/raid/models/toy"
    assert prefill.page_size == 64


def test_card_names_its_five_files_with_size_and_checksum() -> None:
    decode = card("1.3.0.post1", "kimi-k3-ultrafast", "decode")
    assert [(file.slot, file.name) for file in decode.files] == [
        ("model_info", "config.json"),
        ("tokenizer", "tokenizer.json"),
        ("prompt_formatter", "tokenizer_config.json"),
        ("chat_template_file", "chat_template.jinja"),
        ("gen_config", "generation_config.json"),
    ]
    config = decode.file("model_info")
    assert config is not None
    assert (config.size, config.checksum[:13]) == (266, "blake3:b93600")
    assert config.where is Where.FOLDER


@pytest.mark.parametrize("version", ["1.3.0.post1", "1.6.1"])
def test_kimi_card_has_a_tiktoken_file_and_no_template(version: str) -> None:
    kimi = card(version, "kimi")
    tokenizer = kimi.file("tokenizer")
    assert tokenizer is not None
    assert (tokenizer.kind, tokenizer.name) == ("tik_token_model", "tiktoken.model")
    assert kimi.file("chat_template_file") is None


def test_card_without_tokenizer_is_still_a_card() -> None:
    assert card("1.3.0.post1", "notok").file("tokenizer") is None


@pytest.mark.parametrize("version", ["1.3.0.post1", "1.6.1"])
def test_self_hosted_files_come_from_the_worker(version: str) -> None:
    assert {file.where for file in card(version, "selfhost").files} == {Where.WORKER}
    assert "config.json" in {file.name for file in card(version, "selfhost").files}


def test_instance_has_its_address() -> None:
    instances = announced("1.3.0.post1").instances
    assert {(i.component, i.transport) for i in instances} == {
        ("backend", "tcp"),
        ("prefill", "tcp"),
    }
    assert all(":" in instance.address for instance in instances)


def test_hub_location_is_told_from_a_folder() -> None:
    document = json.loads((HERE / "discovery-1.3.0.post1.json").read_text())
    value = document["v1/mdc/notok/backend/generate/3f28a42cdb6514d0"]
    value["card_json"]["model_info"]["hf_config_json"]["path"] = "hf://toy/config.json"
    reading = parse_card("v1/mdc/x", json.dumps(value).encode())
    assert isinstance(reading, Known)
    file = reading.value.file("model_info")
    assert file is not None
    assert file.where is Where.HUB


@pytest.mark.parametrize("value", [b"", b"\xff\xfe", b"[]", b"{}", b'{"card_json":{}}', b"null"])
def test_garbage_is_unknown_and_named(value: bytes) -> None:
    assert isinstance(parse_card("v1/mdc/x", value), Unknown)
    assert [key for key, _ in read_discovery([("v1/mdc/x", value)]).unreadable] == ["v1/mdc/x"]


def test_file_discovery_encodes_slashes() -> None:
    assert key_of_file("v1/mdc/dynamo%2Fprefill%2Fgenerate%2F1f") == (
        "v1/mdc/dynamo/prefill/generate/1f"
    )
