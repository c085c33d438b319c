"""What stands in front of the workers: the router of a vLLM pair, and Dynamo's frontend."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.host import Deployment, Host
from bringup.core.rules import World
from bringup.engines.front import check, front, kind_of, place_of, role_of
from bringup.engines.settle import settled
from bringup.engines.spec import Spec
from bringup.engines.values import values
from tests.conftest import Golden

from .situations import DP2, K3, PD1, PLACES, role
from .test_scripts import RENDERER, SHELLCHECK, made, rendered

HOSTS: dict[str, Host] = {name: place.world(K3, K3.roles[0]).host for name, place in PLACES.items()}
PEERS = {name: place.address for name, place in PLACES.items()}
HERE = replace(K3, services=replace(K3.services, frontend="http://10.0.0.4:8000"))


def standing(deployment: Deployment, host: str) -> tuple[Spec, str]:
    """Return the front of a deployment and its script."""
    own = role_of(deployment, host)
    seen: World = PLACES[host].world(deployment, own)
    workers = [made(deployment, one.name)[0] for one in deployment.roles]
    spec = front(deployment, seen, workers, settled(seen, ()), peers=PEERS)
    given = values(spec, seen, deployment, own, tool="bringup 0.1.0")
    return spec, RENDERER.text(spec.template, given)


@pytest.mark.parametrize(("deployment", "host"), [(PD1, "b200-01"), (HERE, "b300-04")])
def test_front_script_is_as_reviewed(deployment: Deployment, host: str, golden: Golden) -> None:
    spec, text = standing(deployment, host)
    golden(f"{deployment.name}/{spec.script_name}", text)


@pytest.mark.parametrize(("deployment", "host"), [(PD1, "b200-01"), (HERE, "b300-04")])
def test_front_script_passes_shellcheck(deployment: Deployment, host: str, tmp_path: Path) -> None:
    path = tmp_path / "script.sh"
    path.write_text(standing(deployment, host)[1])
    done = subprocess.run([SHELLCHECK, path], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_the_router_knows_every_worker() -> None:
    spec, _ = standing(PD1, "b200-01")
    line = shlex.join(map(str, spec.command.argv))
    assert "--prefill http://10.0.1.1:8100 --decode http://10.0.1.1:8200" in line
    assert check(spec, PD1) == ()


def test_two_prefill_workers_are_two_words_for_the_router() -> None:
    second = replace(PD1.roles[0], name="prefill-2", workers=(("b300-04",),), gpus=(2,))
    spec, _ = standing(replace(PD1, roles=(*PD1.roles, second)), "b200-01")
    assert spec.command.argv.count("--prefill") == 2
    assert check(spec, PD1) == ()


def test_the_router_leaves_out_hosts_that_serve_no_clients() -> None:
    two = replace(PD1, roles=tuple(
        replace(one, gpus=(), workers=((host, "b300-04"),))
        for one, host in zip(PD1.roles, ("b200-01", "b300-07"), strict=True)
    ))  # fmt: skip
    lower = PLACES["b300-04"].world(two, two.roles[0])
    second, _ = rendered(two, lower)
    spec = front(two, lower, [*(made(two, r.name)[0] for r in two.roles), second],
                 settled(lower, ()), peers=PEERS)  # fmt: skip
    assert spec.command.argv.count("--prefill") == 1


def test_a_worker_on_the_fronts_port_is_refused() -> None:
    taken = replace(role(PD1, "prefill", knobs={"port": 8000}), name="taken")
    spec, _ = standing(taken, "b200-01")
    workers = [made(taken, one.name)[0] for one in taken.roles]
    (found,) = check(spec, taken, workers)
    assert found.evidence == ("port of prefill is 8000, the port of the router",)


def test_the_frontend_has_no_gpu_and_no_rdma() -> None:
    spec, text = standing(HERE, "b300-04")
    assert "--gpus" not in text
    assert "/dev/infiniband" not in text
    assert check(spec, HERE) == ()


@pytest.mark.parametrize(
    ("deployment", "kind", "place"),
    [
        (K3, "dynamo.frontend", ""),  # in Kubernetes, at an address of none of these hosts
        (HERE, "dynamo.frontend", "b300-04"),
        (PD1, "vllm-router", "b200-01"),
        (DP2, "", ""),
        (role(PD1, "prefill", workers=(("elsewhere",),)), "vllm-router", ""),
    ],
)
def test_place_of_the_front(deployment: Deployment, kind: str, place: str) -> None:
    assert kind_of(deployment) == kind
    assert place_of(deployment, HOSTS) == place
