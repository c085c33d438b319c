"""Topology advice: the situations of both reports give the reports' verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.errors import UsageError
from bringup.core.reading import Unknown
from bringup.engines.topology import (
    Advice,
    Hardware,
    Link,
    Subject,
    Witness,
    advise,
    aiconfigurator,
    gpus_needed,
)
from bringup.engines.topology_facts import hardware_of, subject_of
from bringup.engines.topology_load import Topology, Workload
from bringup.probes.gpu import Gpus
from bringup.probes.infiniband import InfiniBand
from tests.conftest import Golden

from . import situations
from .situations import b200_facts, b300_facts, model

TWO_B200 = Hardware(1, 2, 179.0)
TWO_B300_HOSTS = Hardware(2, 8, 268.6, Link.RDMA)
QWEN = Subject(15.0, engine="vllm", engine_version="0.24.0")
GEMMA = Subject(27.0, True, "vllm", "0.24.0")
K3 = Subject(1565.0, True, "dynamo.sglang", "0.5.18")
DECODE_HEAVY = Workload(512, 2048, concurrency=128)
PREFILL_HEAVY = Workload(7500, 200, concurrency=128)
STREAMS = Workload(60_000, 400, concurrency=8, token_gap_ms=50, prefill_tokens_s=14_500)

VERDICTS = [
    ("qwen-decode-heavy", TWO_B200, QWEN, DECODE_HEAVY, Topology.COPIES, 2),
    ("qwen-prefill-heavy", TWO_B200, QWEN, PREFILL_HEAVY, Topology.COPIES, 2),
    ("qwen-tight-goal", TWO_B200, QWEN, replace(PREFILL_HEAVY, token_gap_ms=10,
                                                prefill_tokens_s=30_000), Topology.PAIR, 1),
    ("gemma-decode-heavy", TWO_B200, GEMMA, DECODE_HEAVY, Topology.TENSOR, 2),
    ("gemma-prefill-heavy", TWO_B200, GEMMA, PREFILL_HEAVY, Topology.TENSOR, 2),
    ("k3-long-prompts", TWO_B300_HOSTS, K3, STREAMS, Topology.PAIR, 8),
    ("k3-one-host", replace(TWO_B300_HOSTS, hosts=1), K3, STREAMS, Topology.TENSOR, 8),
]  # fmt: skip


def text(advice: Advice) -> str:
    lines = [advice.headline, ""]
    for one in advice.arguments:
        leans = one.leans.value if one.leans else "neither"
        lines.append(f"{one.variable}: {leans}, weight {one.weight}")
        lines += [f"  {one.because}"] + ([f"  {one.figure}"] if one.figure else [])
    return "\n".join([*lines, "", "would change this:", *(f"- {c}" for c in advice.changes), ""])


@pytest.mark.parametrize("case", VERDICTS, ids=lambda c: c[0])
def test_situation_of_a_report_gives_its_verdict(
    case: tuple[str, Hardware, Subject, Workload, Topology, int], golden: Golden
) -> None:
    name, hardware, subject, workload, choice, size = case
    advice = advise(hardware, subject, workload)
    assert (advice.choice, advice.size) == (choice, size)
    golden(f"topology/{name}.txt", text(advice))


def test_no_rdma_between_hosts_keeps_prefill_and_decode_together() -> None:
    apart = replace(TWO_B300_HOSTS, link=Link.TCP)
    assert advise(apart, K3, STREAMS).choice is not Topology.PAIR


def test_unknown_fabric_is_told_and_weighs_nothing() -> None:
    dark = replace(TWO_B300_HOSTS, link=Link.UNKNOWN)
    advice = advise(dark, K3, STREAMS)
    argument = next(a for a in advice.arguments if a.variable == "KV transfer")
    assert argument.weight == 0
    assert "probe the hosts" in argument.because


def test_a_model_that_fits_nowhere_says_so() -> None:
    advice = advise(Hardware(1, 8, 179.0), K3, STREAMS)
    assert any("are needed" in argument.because for argument in advice.arguments)


@pytest.mark.parametrize(
    ("memory", "weights", "need"), [(179.0, 15.0, 1), (179.0, 1565.0, 16), (268.6, 1565.0, 8)]
)
def test_gpus_that_hold_one_instance(memory: float, weights: float, need: int) -> None:
    assert gpus_needed(Hardware(1, 8, memory), Subject(weights)) == need


def test_the_other_witness_is_kept_beside_the_advice() -> None:
    said = aiconfigurator(
        "    Total GPUs: 32\n"
        "    Best Experiment Chosen: \x1b[1mdisagg at 684.79 tokens/s/gpu "
        "(disagg 1.67x better)\x1b[0m\n"
    )
    assert said == Witness(
        "aiconfigurator", Topology.PAIR, "disagg at 684.79 tokens/s/gpu (disagg 1.67x better)"
    )
    assert advise(TWO_B200, QWEN, DECODE_HEAVY, said).witness is said


def test_output_without_a_verdict_is_no_witness() -> None:
    assert aiconfigurator("Traceback (most recent call last):") is None


def test_hardware_is_read_from_facts() -> None:
    pair = hardware_of([b300_facts(), b300_facts(8)])
    assert (pair.hosts, pair.gpus_per_host, pair.link) == (2, 8, Link.RDMA)
    assert pair.memory_gib == pytest.approx(268.6, abs=0.1)
    assert hardware_of([b200_facts()]).link is Link.TCP


def test_facts_that_nobody_got_are_no_tcp() -> None:
    dark = b300_facts().replace(InfiniBand, Unknown("permission denied"))
    assert hardware_of([b300_facts(), dark]).link is Link.UNKNOWN


def test_unknown_gpus_are_an_error_not_a_guess() -> None:
    blind = b300_facts().replace(Gpus, Unknown("timed out"))
    with pytest.raises(UsageError, match="GPUs of a host are not known"):
        advise(hardware_of([b300_facts(), blind]), K3, STREAMS)


def test_a_model_of_unknown_size_is_an_error() -> None:
    with pytest.raises(UsageError, match="size of its model"):
        subject_of(model(situations.K3, weights_gib=None))


def leaning(workload: Workload, variable: str) -> list[tuple[Topology | None, str]]:
    found = advise(TWO_B300_HOSTS, K3, workload).arguments
    return [(one.leans, one.because) for one in found if one.variable == variable]


@pytest.mark.parametrize(
    ("said", "leans", "because"),
    [
        ({"concurrency": 1}, Topology.COPIES, "one request at a time"),
        ({"concurrency": 8}, None, "8 requests at a time"),
        ({"requests_s": 0.001, "prefill_tokens_s": 14_500}, Topology.COPIES, "0.00 workers"),
        ({"requests_s": 0.24, "prefill_tokens_s": 14_500}, Topology.PAIR, "0.99 workers"),
        ({"requests_s": 0.24}, None, "nobody knows how busy"),
    ],
)
def test_traffic_has_its_word(said: dict[str, float], leans: Topology | None, because: str) -> None:
    ((who, why),) = leaning(Workload(60_000, 400, **said), "traffic")  # type: ignore[arg-type]
    assert who is leans
    assert because in why


@pytest.mark.parametrize(
    ("rate", "leans"), [(14_500.0, Topology.TENSOR), (140_000.0, None), (None, None)]
)
def test_a_goal_for_the_first_token_is_held_against_prefill(
    rate: float | None, leans: Topology | None
) -> None:
    goal = Workload(60_000, 400, first_token_ms=1000, prefill_tokens_s=rate)
    assert [who for who, _ in leaning(goal, "first token")] == [leans]


@pytest.mark.parametrize(
    "wrong",
    [Workload(0, 1), Workload(1, -1), Workload(9, 9, reuse=1.5), Workload(9, 9, reuse=1.0),
     Workload(9, 9, token_gap_ms=-5), Workload(9, 9, requests_s=float("nan"))],
)  # fmt: skip
def test_traffic_that_cannot_be_is_an_error(wrong: Workload) -> None:
    with pytest.raises(UsageError, match="cannot argue with"):
        advise(TWO_B200, QWEN, wrong)


def test_copies_on_other_hosts_are_workers_of_their_own() -> None:
    advice = advise(TWO_B300_HOSTS, K3, DECODE_HEAVY)
    assert advice.headline == "2 copies in 2 workers (data_parallel: 1)"
    assert advise(TWO_B200, QWEN, DECODE_HEAVY).headline == "2 copies (data_parallel: 2)"
