"""The practice Dynamo itself: a pair serves, over either discovery."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from .fixtures import MakeLoopback
from .model import toy_model

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("discovery", ["etcd", "file"])
def test_pair_answers_a_chat_through_the_real_frontend(
    loopback: MakeLoopback, discovery: Literal["etcd", "file"]
) -> None:
    dynamo = loopback(discovery=discovery)
    prefill, decode = dynamo.pair(toy_model(dynamo.folder / "models/toy"), "toy")
    frontend = dynamo.frontend()
    frontend.lists("toy")
    answer = frontend.chat("toy", max_tokens=5)
    assert answer.status == 200, answer.text
    said = json.loads(answer.body)
    request_id = said["id"].removeprefix("chatcmpl-")
    assert said["usage"]["completion_tokens"] == 5
    assert said["choices"][0]["message"]["content"]
    prefill.says(f"prefill done request_id={request_id}")
    decode.says(f"decode done request_id={request_id}")
    assert {card.worker_type for card in dynamo.announced().cards} == {"prefill", "decode"}


def test_workers_and_frontend_talk_through_nats(loopback: MakeLoopback) -> None:
    dynamo = loopback(discovery="file")
    dynamo.start_nats()
    plane = {"DYN_REQUEST_PLANE": "nats", "DYN_EVENT_PLANE": "nats"}
    dynamo.worker(toy_model(dynamo.folder / "models/toy"), "toy", env=plane)
    frontend = dynamo.frontend(env=plane)
    frontend.lists("toy")
    assert frontend.chat("toy").status == 200
