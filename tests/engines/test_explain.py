"""Explanations lead from a word on a command line back to the fact."""

from __future__ import annotations

import pytest

from bringup.core.errors import UsageError
from bringup.core.rules import judge
from bringup.decide import JOINT_RULES
from bringup.engines.explain import Explanation, explain, explain_flag, rules
from bringup.engines.knobs import KNOBS
from bringup.rules import fallbacks

from .situations import DP2, K3, role, world
from .test_scripts import made, rendered


def text(one: Explanation) -> str:
    own = "\n".join([one.title, *(f"{label}: {line}" for label, line in one.lines), one.source])
    return "\n".join([own, *map(text, one.below)])


def test_a_flag_leads_back_to_the_line_that_a_host_printed() -> None:
    spec, _ = made(DP2, "serve")
    found = judge(fallbacks.ROWS, world(DP2, "serve"), host="b200-01")
    said = text(explain_flag("--attention-backend", spec, found))
    assert said.startswith("--attention-backend TRITON_ATTN")
    assert "attention_backend = triton (default: the engine decides)" in said
    assert "seen: sh: nvcc: not found" in said
    assert "FlashInfer compiles its sampler" in said
    assert "the next run chooses FlashInfer again" in said


def test_a_variable_is_explained_as_a_flag_is() -> None:
    spec, _ = made(K3, "decode")
    found = judge(fallbacks.ROWS, world(K3, "decode"))
    said = text(explain_flag("UCX_NET_DEVICES", spec, found))
    assert "switch bridges left out" in said


def test_a_word_of_the_deployment_is_told_as_that() -> None:
    spec, _ = made(K3, "decode")
    assert "said deployment kimi-k3" in text(explain_flag("--model-path", spec))


def test_an_overruled_rule_still_shows() -> None:
    stubborn = role(DP2, "serve", knobs={"attention_backend": "flashinfer"})
    spec, _ = rendered(stubborn, world(stubborn, "serve"))
    said = text(explain_flag("--attention-backend", spec))
    assert "said: role serve" in said
    assert "overrules: triton, said rule vllm-without-nvcc" in said


def test_a_secret_is_not_told() -> None:
    kept = role(K3, "decode", env={"HF_TOKEN": "hunter2"})
    spec, _ = rendered(kept, world(kept, "decode"))
    assert "hunter2" not in text(explain_flag("HF_TOKEN", spec))


def test_a_flag_that_does_not_stand_names_the_nearest() -> None:
    spec, _ = made(K3, "decode")
    with pytest.raises(UsageError, match="did you mean --tp-size"):
        explain_flag("--tp-sizes", spec)


@pytest.mark.parametrize("name", sorted(KNOBS))
def test_every_knob_is_explained(name: str) -> None:
    said = text(explain(name))
    assert KNOBS[name].help in said
    assert "default: " in said


@pytest.mark.parametrize("name", sorted(rules()))
def test_every_rule_is_explained(name: str) -> None:
    said = explain(name)
    assert said.source
    assert "reason" in dict(said.lines)


def test_a_flag_alone_is_explained_by_its_knob() -> None:
    assert "vllm: --attention-backend from 0.13.0" in text(explain("--attention-backend"))
    assert "vllm: VLLM_ATTENTION_BACKEND before 0.13.0" in text(explain("VLLM_ATTENTION_BACKEND"))


@pytest.mark.parametrize("name", ["dspark-without-draft", "flag-not-yet"])
def test_a_finding_on_a_command_line_is_explained(name: str) -> None:
    assert dict(explain(name).lines)["reason"]


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean vllm-without-nvcc"):
        explain("vllm-without-nvc")


@pytest.mark.parametrize("name", sorted(row.id for row in JOINT_RULES))
def test_every_rule_across_hosts_is_explained(name: str) -> None:
    assert explain(name).source


@pytest.mark.parametrize(
    ("name", "package", "says"),
    [
        ("--is-prefill-worker", "dynamo.vllm", "in 1.3.0.post1"),
        ("--mamba-scheduler-strategy", "sglang", "not in "),
        ("VLLM_USE_FLASHINFER_MOE_FP4", "instead", "--moe-backend"),
    ],
)
def test_a_flag_without_a_knob_is_told_by_the_versions_that_have_it(
    name: str, package: str, says: str
) -> None:
    assert says in dict(explain(name).lines)[package]
