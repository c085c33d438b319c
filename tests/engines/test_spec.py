"""Specs: what the container may touch, workers of several hosts, and what the digest is of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.errors import UsageError
from bringup.core.facts import Facts
from bringup.core.host import Deployment, Host, Kind, Login, Mode, Role, Scalar
from bringup.core.reading import Absent
from bringup.core.rules import World, judge
from bringup.engines import ENGINES
from bringup.engines.collect import engines
from bringup.engines.container import options
from bringup.engines.knobs import KNOBS, knobs_of
from bringup.engines.settle import settled
from bringup.engines.spec import Spec, specify
from bringup.probes.infiniband import InfiniBand
from bringup.rules import fallbacks

from .situations import DP2, K3, PLACES, b300_facts, image, role, world
from .test_scripts import made

PEERS = {"b300-04": "10.0.0.4", "b300-07": "10.0.0.7"}


def spec_of(deployment: Deployment, seen: World, **operator: Scalar) -> Spec:
    assert seen.role is not None
    decisions = settled(seen, judge(fallbacks.ROWS, seen), operator)
    engine = ENGINES[deployment.engine]
    return specify(engine, deployment, seen.role, seen, decisions, peers=PEERS)


def words_of(deployment: Deployment, *facts: tuple[type, object], **knobs: Scalar) -> str:
    """Return the container's options of the decode worker, as one line."""
    changed = replace(deployment, knobs={**deployment.knobs, **knobs})
    seen = world(changed, "decode", *facts)
    assert seen.role is not None
    return " ".join(options(spec_of(changed, seen), seen, changed, seen.role))


@pytest.mark.parametrize(
    ("knobs", "there", "gone"),
    [
        ({}, "--cap-add IPC_LOCK --device /dev/infiniband", "--privileged"),
        ({"privileges": "privileged"}, "--privileged", "--cap-add"),
        ({"shm": "64g"}, "--shm-size 64g", "--ipc"),
        ({"gpu_access": "cdi"}, "--device nvidia.com/gpu=all", "--gpus"),
        ({"memlock": "1073741824"}, "memlock=1073741824", "memlock=-1"),
        ({"restart": "on-failure:3"}, "--restart on-failure:3", "--restart no"),
        ({"container_engine": "podman"}, "max-size=100m", "max-file"),
        ({"cache_folder": "/var/cache/k3"}, "--volume /var/cache/k3:/var/cache/k3", "--pid"),
        ({"share_pid": True}, "--pid host", "--privileged"),
    ],
)
def test_the_container_touches_what_the_knobs_say(
    knobs: dict[str, Scalar], there: str, gone: str
) -> None:
    words = words_of(K3, **knobs)
    assert there in words
    assert gone not in words


def test_a_part_of_the_gpus_is_one_quoted_list() -> None:
    assert '--gpus "device=0,1"' in words_of(role(K3, "decode", gpus=(0, 1)))


def test_a_host_without_rdma_passes_no_devices() -> None:
    words = words_of(K3, (InfiniBand, Absent("no such folder")))
    assert "/dev/infiniband" not in words


def two_hosts(engine: str) -> Deployment:
    base = image(K3, engine_version="0.33.0") if "vllm" in engine else K3
    worker = Role("serve", Mode.AGGREGATED, (("b300-04", "b300-07"),))
    return replace(base, engine=engine, roles=(worker,))


def at(deployment: Deployment, host: str) -> World:
    return PLACES[host].world(deployment, deployment.roles[0])


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("dynamo.sglang", "--nnodes 2 --node-rank 1"),
        ("dynamo.sglang", "--tp-size 16"),
        ("dynamo.sglang", "--dist-init-addr 10.0.0.4:20000"),
        ("vllm", "--nnodes 2 --node-rank 1"),
        ("vllm", "--tensor-parallel-size 16"),
        ("vllm", "--master-addr 10.0.0.4 --master-port 20000 --headless"),
    ],
)
def test_a_worker_of_two_hosts_knows_its_rank_and_its_leader(engine: str, words: str) -> None:
    deployment = two_hosts(engine)
    line = " ".join(map(str, spec_of(deployment, at(deployment, "b300-07")).command.argv))
    assert words in line


@pytest.mark.parametrize("engine", ["dynamo.sglang", "vllm"])
def test_a_worker_of_two_hosts_is_accepted_by_its_version(engine: str) -> None:
    deployment = two_hosts(engine)
    made_ = ENGINES[engine]
    for host in ("b300-04", "b300-07"):
        line = spec_of(deployment, at(deployment, host)).command
        assert made_.check(line, made_.versions(deployment)) == ()


def test_devices_are_each_hosts_own() -> None:
    left, right = (made(K3, name)[0].command.env["UCX_NET_DEVICES"]
                   for name in ("prefill", "decode"))  # fmt: skip
    assert left != right


def test_the_digest_is_of_what_changes_the_worker() -> None:
    base = made(K3, "decode")[0].config
    assert made(K3, "decode")[0].config == base
    for changed in (
        role(K3, "decode", knobs={"page_size": 64}),
        role(K3, "decode", env={"NCCL_DEBUG": "INFO"}),
        replace(K3, knobs={"privileges": "privileged"}),
        image(K3, digest="sha256:" + "0" * 64),
    ):
        assert made(changed, "decode")[0].config != base
    why_only = replace(K3, origin=replace(K3.origin, file="elsewhere.yml"))
    assert made(why_only, "decode")[0].config == base


def test_two_roles_of_one_mode_on_one_host_have_scripts_of_their_own() -> None:
    short, long = (Role(f"decode-{n}", Mode.DECODE, (("b300-07",),), gpus=g)
                   for n, g in (("short", (0, 1)), ("long", (2, 3))))  # fmt: skip
    deployment = replace(K3, roles=(K3.roles[0], short, long))
    names = {made(deployment, one.name)[0].script_name for one in (short, long)}
    assert names == {"serve_dynamo_decode_decode-short.sh", "serve_dynamo_decode_decode-long.sh"}


def test_an_operators_word_goes_over_a_rule_and_the_rule_still_shows() -> None:
    spec = spec_of(DP2, world(DP2, "serve"), attention_backend="flashinfer")
    decision = spec.decisions["attention_backend"]
    assert decision.by == "the operator"
    assert [lost.by for lost in decision.overruled] == ["rule vllm-without-nvcc"]
    assert "FLASHINFER" in spec.command.argv


def test_a_knob_that_this_engine_lacks_is_an_error_in_a_role() -> None:
    wrong = role(DP2, "serve", knobs={"hicache_ratio": 3.0})
    with pytest.raises(UsageError, match=r"hicache_ratio.*; it is for dynamo\.sglang"):
        spec_of(wrong, world(wrong, "serve"))


def test_a_kinds_word_for_another_engine_is_left_out() -> None:
    """A kind or a host serves many engines."""
    kind = Kind("b200", ("NVIDIA B200",), knobs={"hicache_ratio": 3.0, "shm": "8g"})
    seen = replace(world(DP2, "serve"), kind=kind)
    spec = spec_of(DP2, seen)
    assert "hicache_ratio" not in spec.decisions
    assert spec.decisions["shm"].value == "8g"


def test_a_host_known_by_name_announces_no_address() -> None:
    host = Host("b300-07", Login("b300-07.example"))
    seen = World(host, b300_facts(), None, K3, K3.roles[1])
    env = spec_of(K3, seen).command.env
    assert "DYN_TCP_RPC_HOST" not in env
    assert "SGLANG_HOST_IP" not in env


def test_without_facts_the_engine_decides_on_tensor_parallel() -> None:
    seen = replace(world(K3, "decode"), facts=Facts())
    assert "--tp-size" not in spec_of(K3, seen).command.argv


def test_engines_are_collected_by_name() -> None:
    assert list(engines()) == ["dynamo.sglang", "dynamo.vllm", "vllm"]


@pytest.mark.parametrize("engine", sorted(engines()))
def test_every_setting_of_an_engine_is_one_of_its_knobs(engine: str) -> None:
    used = {setting.knob for setting in engines()[engine].settings}
    assert used <= set(knobs_of(engine))


def test_every_engine_knob_reaches_an_engine_or_the_script() -> None:
    """A knob that nothing reads would be a setting without effect."""
    spelt = {setting.knob for engine in engines().values() for setting in engine.settings}
    elsewhere = {
        "kv_load_failure", "kv_role", "leader_address", "leader_port", "tool_call_parser",
        "transfer_backend", "http_port", "privileges", "gpu_access", "shm", "share_pid", "memlock",
        "restart", "container_name", "container_engine", "serve_folder", "log_folder",
        "log_max_size", "log_max_files", "venv", "python", "service", "ready_timeout_s",
        "compute_nics", "storage_nics",
    }  # fmt: skip
    assert set(KNOBS) - spelt - elsewhere == set()
