"""Explanations over the practice fleet: from a flag back to the fact."""

from __future__ import annotations

import pytest

from bringup.engines.explain import rules
from bringup.engines.knobs import KNOBS

from .conftest import Lab

pytestmark = pytest.mark.xdist_group("lab")


def test_a_variable_on_a_host_is_traced_to_the_rule_and_the_evidence(lab: Lab) -> None:
    done = lab.run("explain", "UCX_NET_DEVICES", "--host", "b300-07")
    assert done.returncode == 0, done.stderr
    for part in ("rdma-device-list", "switch bridges left out", "serve_dynamo_decode.sh"):
        assert part in done.stdout


def test_a_flag_that_does_not_stand_there_is_told(lab: Lab) -> None:
    done = lab.run("explain", "enable-hierarchical-cash", "--host", "b300-07")
    assert done.returncode == 2
    assert "cannot explain" in done.stderr


def test_a_rule_is_explained_without_any_host(lab: Lab) -> None:
    done = lab.run("explain", "FAB-03")
    assert done.returncode == 0
    assert "source" in done.stdout


def test_without_a_name_every_check_rule_and_knob_is_listed(lab: Lab) -> None:
    done = lab.run("explain")
    assert done.returncode == 0
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert {*rules(), *KNOBS} <= listed
