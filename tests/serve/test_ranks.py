"""What is asked of a worker that runs on two hosts, and what its scripts hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bringup.core.facts import Facts
from bringup.decide import design
from bringup.edge.render import Renderer
from bringup.engines.values import values
from bringup.flow.open import read_inventory
from bringup.flow.targets import Target, target_of
from bringup.readiness.worker_ask import asks

ROOT = Path(__file__).parents[2]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """A prefill worker on one host, a decode worker on two."""
    folder = tmp_path / "inventory"
    for name in ("deployments", "kinds"):
        (folder / name).mkdir(parents=True)
    hosts = {f"h{n}": {"address": f"10.0.0.{n}", "user": "root"} for n in (1, 2, 3)}
    deployment = {
        "engine": "dynamo.sglang",
        "model": {"served_name": "toy", "path": "/model"},
        "image": {"name": "standin", "reference": "standin:1", "engine_version": "0.5.18",
                  "dynamo_version": "1.3.0.post1"},
        "roles": {
            "prefill": {"mode": "prefill", "hosts": "h1", "knobs": {"tensor_parallel": 8}},
            "decode": {"mode": "decode", "hosts": "h[2-3]", "nodes_per_worker": 2,
                       "knobs": {"tensor_parallel": 16}},
        },
        "services": {"etcd": ["http://10.0.0.9:2379"], "frontend": "http://10.0.0.9:8000"},
    }  # fmt: skip
    (folder / "hosts.yml").write_text(yaml.safe_dump({"hosts": hosts}))
    (folder / "deployments/toy.yml").write_text(yaml.safe_dump(deployment))
    inventory = read_inventory(str(folder))
    return target_of(inventory, inventory.deployments["toy"])


def test_only_rank_0_registers_and_is_asked_for_counters(target: Target) -> None:
    found = {worker.host: worker for worker in target.workers}
    assert {host: worker.registers for host, worker in found.items()} == {
        "h1": True, "h2": True, "h3": False,
    }  # fmt: skip
    assert (found["h2"].follows, found["h3"].follows) == ("", "h2/decode")
    assert (found["h3"].url, found["h3"].metrics) == ("", "")
    assert found["h2"].metrics == "http://127.0.0.1:8081/metrics"


def test_every_rank_is_asked_for_its_container_and_its_log(target: Target) -> None:
    for worker in target.workers:
        run, log = asks(worker)
        assert "inspect --format '{{json .State}}\n" in run.script
        assert 'logs --timestamps --since "$since" "$2"' in log.script
        assert f"docker {worker.name}" in run.script


def test_each_rank_has_a_system_port_its_rank_and_its_leaders_address(target: Target) -> None:
    renderer, blank = Renderer(ROOT / "templates"), {name: Facts() for name in ("h1", "h2", "h3")}
    for rank, name in enumerate(("h2", "h3")):
        host = target.inventory.hosts[name]
        (part,) = design(target.inventory, host, target.deployment, blank, {}).parts
        assert part.world.role is not None
        given = values(part.spec, part.world, target.deployment, part.world.role, tool="t")
        text = renderer.text(part.spec.template, given)
        assert "DYN_SYSTEM_PORT=8081" in text
        assert "--dist-init-addr 10.0.0.2:20000" in text
        assert f"--node-rank {rank}" in text
