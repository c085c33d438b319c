"""A host's whole design: its workers, what stands in front, and whether the pair agrees."""

from __future__ import annotations

from dataclasses import replace

from bringup.core.facts import Facts
from bringup.core.host import Deployment, Inventory
from bringup.core.reading import Known
from bringup.core.rules import Level
from bringup.core.words import Secret
from bringup.decide import Design, design
from bringup.engines.pair import agree
from bringup.probes.stored_image import StoredImage

from .situations import DP2, K3, PD1, PLACES, model, role

HOSTS = {name: place.world(K3, K3.roles[0]).host for name, place in PLACES.items()}
FACTS: dict[str, Facts] = {name: place.facts for name, place in PLACES.items()}


def designed(deployment: Deployment, host: str, **operator: str | int | float | bool) -> Design:
    inventory = Inventory("inventory", HOSTS, {}, {}, {deployment.name: deployment})
    return design(inventory, HOSTS[host], deployment, FACTS, operator)


def test_one_host_gets_both_workers_and_the_router() -> None:
    found = designed(PD1, "b200-01")
    assert [part.spec.script_name for part in found.parts] == [
        "serve_vllm_prefill.sh",
        "serve_vllm_decode.sh",
        "serve_vllm_router.sh",
    ]
    ports = [part.spec.ports.get("port") for part in found.parts[:2]]
    assert len(set(ports)) == 2


def test_a_frontend_in_kubernetes_is_not_ours() -> None:
    found = designed(K3, "b300-04")
    assert [part.spec.script_name for part in found.parts] == ["serve_dynamo_prefill.sh"]


def test_the_reports_pair_is_not_blocked() -> None:
    for host in ("b300-04", "b300-07"):
        blocks = [f.id for f in designed(K3, host).findings
                  if f.level is Level.BLOCK and f.id in OURS]  # fmt: skip
        assert blocks == []


OURS = {"pair-differs", "rdma-between-pair", "model-fits", "pair-agrees", "flag-unknown"}


def test_an_operators_word_reaches_both_sides_of_the_comparison() -> None:
    found = designed(K3, "b300-04", page_size=64)
    assert "pair-differs" not in {f.id for f in found.findings}


def test_a_hosts_own_word_that_parts_the_pair_is_told_once() -> None:
    hosts = {**HOSTS, "b300-07": replace(HOSTS["b300-07"], knobs={"kv_cache_dtype": "fp8_e4m3"})}
    inventory = Inventory("inventory", hosts, {}, {}, {"kimi-k3": K3})
    found = design(inventory, HOSTS["b300-04"], K3, FACTS, {})
    said = [f.evidence[0] for f in found.findings if f.id in ("pair-agrees", "pair-differs")]
    assert said == [
        "kv_cache_dtype: prefill on b300-04 says nothing, decode on b300-07 says fp8_e4m3"
    ]


def test_sides_that_differ_as_rendered_block_on_both_hosts_alike() -> None:
    """Told in one line, so that a report can fold the hosts together."""
    left, right = (designed(K3, host).parts[0].spec for host in ("b300-04", "b300-07"))
    other = replace(right, image_digest="sha256:" + "0" * 64)
    one, two = agree([left, other]), agree([other, left])
    assert one == two
    assert [f.evidence[0].split(":")[0] for f in one] == ["image"]


def test_a_secret_that_parts_the_pair_is_not_shown() -> None:
    left, right = (designed(K3, host).parts[0].spec for host in ("b300-04", "b300-07"))
    secret = Secret("nats://me:hunter2@10.0.0.11:4222")
    command = replace(right.command, env={**right.command.env, "NATS_SERVER": secret})
    found = agree([left, replace(right, command=command)])
    assert [f.id for f in found] == ["pair-differs"]
    assert "hunter2" not in repr(found)


def test_what_a_check_says_is_of_its_host() -> None:
    wrong = role(K3, "decode", flags={"no-such-flag": None})
    found = designed(wrong, "b300-07")
    assert {f.host for f in found.findings if f.id == "flag-unknown"} == {"b300-07"}


def test_hosts_with_unlike_images_are_blocked_before_anything_changes() -> None:
    facts = {
        name: own.replace(StoredImage, Known(StoredImage("sha256:" + letter * 64)))
        for (name, own), letter in zip(FACTS.items(), "abc", strict=True)
    }
    inventory = Inventory("inventory", HOSTS, {}, {}, {"kimi-k3": K3})
    for host in ("b300-04", "b300-07"):
        found = design(inventory, HOSTS[host], K3, facts, {})
        (pair,) = (f for f in found.findings if f.id == "pair-image")
        assert pair.level is Level.BLOCK
        assert pair.evidence == ("b300-04: sha256:aaaaaaaaaaaa", "b300-07: sha256:bbbbbbbbbbbb")


def test_a_fact_is_told_once() -> None:
    """The rule of what is to run says more than the check of the bare host."""
    told = {f.id for f in designed(DP2, "b200-01").findings}
    assert {"vllm-without-nvcc", "model-fits"} <= told
    assert not told & {"JIT-01", "GPU-23"}


def test_a_check_speaks_where_its_rule_knows_nothing() -> None:
    told = {f.id for f in designed(model(DP2, weights_gib=None), "b200-01").findings}
    assert {"model-fits", "GPU-23"} <= told
