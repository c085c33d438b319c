"""One deployment in three topologies: what is kept, what is set, and what cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.bench.derive import Ground, derived, impossible, named
from bringup.core.errors import UsageError
from bringup.core.host import Deployment, Image, Mode, Model, Role, Services
from bringup.engines.topology_load import Topology
from bringup.flow.bench_open import refuse_unmeasurable

COPIES, TENSOR, PAIR = Topology
TWO = Ground("h1", (0, 1))
FP8 = {"kv_cache_dtype": "fp8"}
DEPLOYMENT = Deployment(
    "qwen", "vllm", Model("qwen", "/models/qwen", weights_gib=15), Image("vllm"),
    (
        Role("prefill", Mode.PREFILL, (("h1",),), (0,), knobs={"port": 8100, **FP8}),
        Role("decode", Mode.DECODE, (("h1",),), (1,), knobs={"port": 8200, **FP8}),
    ),
    Services(frontend="http://192.0.2.21:8000"),
    knobs={"tensor_parallel": 1, "max_model_len": 4096, "container_name": "mine"},
)  # fmt: skip


def test_copies_hold_one_copy_a_gpu_and_what_all_roles_agree_on() -> None:
    made = derived(DEPLOYMENT, COPIES, TWO)
    (role,) = made.roles
    assert made.name == "qwen-bench-dp"
    assert role.knobs == {"kv_cache_dtype": "fp8", "tensor_parallel": 1, "data_parallel": 2}
    assert made.knobs == {"max_model_len": 4096}


def test_a_pair_keeps_its_own_roles_settings_and_halves_the_gpus() -> None:
    four = Ground("h1", (0, 1, 2, 3))
    prefill, decode = derived(DEPLOYMENT, PAIR, four).roles
    assert (prefill.gpus, decode.gpus) == ((0, 1), (2, 3))
    assert prefill.knobs == {"port": 8100, "kv_cache_dtype": "fp8", "tensor_parallel": 2}
    assert decode.knobs["port"] == 8200


def test_the_frontend_of_the_deployment_is_not_asked() -> None:
    assert derived(DEPLOYMENT, TENSOR, TWO).services.frontend == ""


@pytest.mark.parametrize(
    ("topology", "ground", "why"),
    [
        (COPIES, TWO, ""),
        (COPIES, replace(TWO, need=2), "2 GPUs hold one copy: a copy takes 2"),
        (TENSOR, Ground("h1", (0,)), "tensor parallel takes at least 2 GPUs, 1 are there"),
        (PAIR, Ground("h1", (0,)), "prefill and decode take 1 GPUs each, 1 are there"),
        (PAIR, Ground("h1", tuple(range(8)), need=4), ""),
    ],
)
def test_what_the_gpus_cannot_hold_is_left_out_with_its_reason(
    topology: Topology, ground: Ground, why: str
) -> None:
    assert impossible(topology, ground) == why


def test_an_unknown_topology_is_an_error_that_names_the_near_one() -> None:
    with pytest.raises(UsageError, match="1p1d"):
        named("1p1")


@pytest.mark.parametrize("engine", ["sglang", "dynamo.sglang", "dynamo.vllm"])
def test_a_deployment_of_another_engine_is_refused_before_anything_is_asked(engine: str) -> None:
    """Also before the host: a run that cannot be must not send anybody to look for an option."""
    other = replace(DEPLOYMENT, engine=engine)
    with pytest.raises(UsageError) as refused:
        refuse_unmeasurable(other, ())
    assert f"its engine is {engine}" in refused.value.message
    assert refused.value.remedy.endswith("bringup accept --deployment qwen")
