"""A frontend's log in both of its forms, as two releases wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from bringup.bundle.frontend_log import Cause, Tried, attempts, last_attempt

OLD = (
    "2026-11-29T16:17:37.810901Z ERROR dynamo_llm::discovery::watcher: Error adding model from "
    'discovery model_name="toy" namespace="dynamo" error="{}"'
)
NEW = (
    "2026-11-29T16:17:54.312481Z  WARN dynamo_llm::discovery::controller: Model materialization "
    'failed; scheduling retry group=["toy","[\\"dynamo\\",\\"backend\\",\\"generate\\"]"] '
    'attempt=1 retry_ms=1000 error="{}"'
)
ADDED = (
    "2026-11-29T16:11:18.026992Z  INFO dynamo_llm::discovery::watcher: added model "
    'model_name="toy" namespace="dynamo"'
)
COMMITTED = (
    "2026-11-29T16:17:54.339034Z  INFO dynamo_llm::discovery::watcher: Committed discovered model "
    'group model_name="toy" group=["toy","[\\"dynamo\\"]"] members=1'
)

WORDS = {
    "hub::from_hf(/raid/models/K3): Failed to fetch model '/raid/models/K3'": Cause.MISSING_FILE,
    "hub::from_hf(kimi-k3-ultrafast): Failed to fetch model": Cause.HUB_NAME,
    "custom file t.jinja not reachable on this host": Cause.MISSING_FILE,
    "/raid/models/K3/tokenizer_config.json is 151 bytes, exceeds cap 150": Cause.LONGER_FILE,
    "checksum mismatch for file:///raid/K3/config.json: expected blake3:a, got blake3:b": (
        Cause.OTHER_BYTES
    ),
    "copying /raid/K3/config.json -> /root/x: Permission denied (os error 13)": (
        Cause.UNREADABLE_FILE
    ),
    "prompt_formatter_from_mdc: chat_template field is required in the tokenizer_config.json": (
        Cause.NO_TEMPLATE
    ),
    "chat pipeline requires preprocessed routing": Cause.NO_TOKENIZER,
    "prompt_formatter_from_mdc: MDC does not contain a prompt formatter": (
        Cause.NO_TOKENIZER_CONFIG
    ),
    "tokenizer: Failed to load /root/.cache/dynamo/mdc/by-slug/k/1/tiktoken.model: Unsupported "
    "tiktoken model_type 'kimi_k3'. Currently supported: kimi": Cause.TOKENIZER_TYPE,
    "OpenAIPreprocessor.new_with_parts: missing eos_token_id in generation_config.json": (
        Cause.NO_END
    ),
    "creating MDC blobs dir /root/.cache/dynamo/mdc/blobs: Not a directory (os error 20)": (
        Cause.CACHE
    ),
    "fetching http://10.0.0.4:8081/v1/metadata/x/config.json returned status 500": (
        Cause.SELF_HOSTED
    ),
    "build_preprocessed_routing: Generic error: Interface not found: 127.0.0.1": Cause.INTERFACE,
    "something nobody has seen yet": Cause.OTHER,
}


def as_json(text: str) -> str:
    row = {"level": "ERROR", "message": "Error adding model from discovery", "error": text}
    return json.dumps({**row, "model_name": "toy"}, separators=(",", ":"))


@pytest.mark.parametrize("form", [OLD.format, NEW.format, as_json], ids=["1.3", "1.6", "json"])
@pytest.mark.parametrize("words", WORDS)
def test_cause_is_told_from_the_frontend_s_own_words(
    words: str, form: Callable[[str], str]
) -> None:
    (tried,) = attempts(f"first line\n{form(words)}\nlast line\n")
    assert (tried.model, tried.cause) == ("toy", WORDS[words])


@pytest.mark.parametrize("line", [ADDED, COMMITTED])
def test_adding_is_told_from_a_failure(line: str) -> None:
    assert list(attempts(line)) == [Tried("toy")]


def test_colours_are_no_part_of_the_words() -> None:
    line = ADDED.replace("model_name", "\x1b[3mmodel_name\x1b[0m")
    assert list(attempts(line)) == [Tried("toy")]


def test_failure_counts_until_all_workers_were_added_after_it() -> None:
    failed = OLD.format("chat pipeline requires preprocessed routing")
    both = "\n".join([failed, ADDED, ADDED])
    one = "\n".join([failed, ADDED])
    assert last_attempt(both, "toy", workers=2) == Tried("toy")
    found = last_attempt(one, "toy", workers=2)
    assert found is not None
    assert found.cause is Cause.NO_TOKENIZER


def test_other_models_do_not_count() -> None:
    assert last_attempt(OLD.format("x"), "other") is None


@pytest.mark.parametrize("line", ["", "{", '{"message":', '{"message": 7}', "\x00\xff"])
def test_garbage_is_passed_over(line: str) -> None:
    assert list(attempts(line)) == []
