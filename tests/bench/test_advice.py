"""Kept runs as a witness: only of the same model on the same kind and count of GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.bench.result import parse
from bringup.bench.table import FAILED, LEFT_OUT, MEASURED, Bench, Row, document, read, subject
from bringup.core.facts import Facts
from bringup.core.host import Deployment
from bringup.core.reading import Known
from bringup.engines.topology_load import Topology
from bringup.flow.topology import trials_of
from bringup.probes.gpu import Gpu, Gpus

from .test_derive import DEPLOYMENT
from .test_result import DATA, EIGHT

COPIES, TENSOR, PAIR = Topology
RESULT = parse((DATA / "vllm-0.24.0.json").read_text(), EIGHT)
ROWS = (
    Row(COPIES, MEASURED, 60.0, (RESULT,)),
    Row(TENSOR, FAILED, why="no nvcc", cause="nvcc-missing"),
    Row(PAIR, LEFT_OUT, why="one GPU"),
)
SUBJECT = subject(DEPLOYMENT, gpu="NVIDIA B200", gpus=2, driver="580.95.05")
BENCH = Bench("qwen", "h1", "2026-11-29T19:00:00Z", SUBJECT, (EIGHT,), (COPIES, TENSOR), ROWS)


def facts(count: int = 2, name: str = "NVIDIA B200") -> Facts:
    gpus = tuple(Gpu(index, name) for index in range(count))
    return Facts({Gpus: Known(Gpus("580.95.05", "13.0", gpus))})


def test_a_document_is_read_back_as_it_was_written() -> None:
    assert read(document(BENCH)) == BENCH


def test_rows_become_trials_and_what_was_left_out_says_nothing() -> None:
    (found,) = trials_of([BENCH], DEPLOYMENT, [facts()])
    assert found.same_image
    copies, tensor = found.trials
    assert (copies.topology, copies.output_tokens_s) == (COPIES, RESULT.output_tokens_s)
    assert (tensor.topology, tensor.output_tokens_s, tensor.why) == (TENSOR, None, "no nvcc")


def test_another_image_is_told_as_that() -> None:
    other = replace(DEPLOYMENT, image=replace(DEPLOYMENT.image, digest="sha256:2"))
    (found,) = trials_of([BENCH], other, [facts()])
    assert not found.same_image


@pytest.mark.parametrize(
    ("deployment", "seen"),
    [
        (replace(DEPLOYMENT, model=replace(DEPLOYMENT.model, path="/models/other")), facts()),
        (replace(DEPLOYMENT, model=replace(DEPLOYMENT.model, revision="2")), facts()),
        (DEPLOYMENT, facts(name="NVIDIA B300")),
        (DEPLOYMENT, facts(count=8)),
        (DEPLOYMENT, Facts()),
    ],
    ids=["model", "revision", "kind", "count", "nobody looked"],
)
def test_another_model_or_other_gpus_are_no_witness(deployment: Deployment, seen: Facts) -> None:
    assert list(trials_of([BENCH], deployment, [seen])) == []
