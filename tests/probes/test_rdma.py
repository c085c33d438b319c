"""Device files, counters and PCI detours of RDMA; and which questions a deployment adds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.facts import Facts, Probe
from bringup.core.host import Deployment, Host, Image, Login, Model, Services
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.script import LIMIT_BYTES, Section, compose
from bringup.probes import rdma
from bringup.probes.hca import Hca, InfiniBand, Purpose
from bringup.probes.rdma import AccessControl, LinkCounters, RdmaNodes
from bringup.probes.scope import Scope, corrected, questions, scope_of

from .asking import SHELLS, ask
from .test_infiniband import Sysfs


def section(text: str, rc: int = 0) -> Section:
    return Section("x", rc, text)


@pytest.mark.parametrize("probe", rdma.PROBES, ids=lambda probe: probe.name)
@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n\0:=|")))
def test_garbage_is_unknown(probe: Probe[object], text: str) -> None:
    assert isinstance(probe.parse(section(text)), Unknown)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_counters_of_active_nics_are_read_and_bridges_left_alone(
    tmp_path: Path, shell: tuple[str, ...]
) -> None:
    sysfs = Sysfs(tmp_path)
    sysfs.hca("mlx5_0", "pci0000:18/0000:18:00.0")
    sysfs.hca("mlx5_1", "pci0000:19/0000:19:00.0", state="1: DOWN")
    for function in range(4):
        sysfs.hca(f"mlx5_{function + 2}", f"pci0000:05/0000:05:00.{function}")
    for number in range(6):
        (ports,) = tmp_path.glob(f"sys/devices/*/*/infiniband/mlx5_{number}/ports/1")
        (ports / "counters").mkdir()
        (ports / "counters/symbol_error").write_text("7\n")
        (ports / "counters/link_downed").write_text("N/A (no PMA)\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/uptime").write_text("3600.25 100.00\n")
    found = ask(rdma.FIRST, root=str(tmp_path), shell=shell)[LinkCounters]
    assert isinstance(found, Known)
    assert found.value == LinkCounters(3600.25, {"mlx5_0": {"symbol_error": 7}})


def test_device_files_are_listed_or_surely_absent(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    assert isinstance(ask(rdma.PROBES[1], root=str(tmp_path))[RdmaNodes], Absent)
    (tmp_path / "dev/infiniband").mkdir()
    for name in ("uverbs10", "uverbs2", "rdma_cm"):
        (tmp_path / "dev/infiniband" / name).touch()
    found = ask(rdma.PROBES[1], root=str(tmp_path))[RdmaNodes]
    assert isinstance(found, Known)
    assert found.value.names == ("rdma_cm", "uverbs2", "uverbs10")


def test_bridges_that_validate_sources_are_named() -> None:
    found = rdma.parse_acs(section("validating\t0000:15:01.0\nbridges\t12\n"))
    assert isinstance(found, Known)
    assert found.value == AccessControl(("0000:15:01.0",), 12)


SERVICES = Services(("http://etcd-1:2379", "http://etcd-2:2379"), "nats://nats:4222")
DEPLOYMENT = Deployment(
    "k3", "dynamo.sglang", Model("k3", "/raid/models/K3"), Image("k3", "k3:1"), (), SERVICES
)


def test_a_deployment_adds_its_questions_once_each() -> None:
    names = [probe.name for probe in questions(scope_of(DEPLOYMENT, ports=[8998], container="k3"))]
    assert len(names) == len(set(names))
    assert {"model", "model_config", "image", "inside", "etcd", "nats", "names"} <= set(names)
    assert not {"read_speed", "reach"} & set(names)
    assert names[-1] == "link_counters_again"


def test_all_questions_fit_into_one_argument() -> None:
    ports = tuple(range(8000, 8064))
    reach = tuple(f"b300-{n:02}:8998" for n in range(16))
    scope = scope_of(DEPLOYMENT, ports=ports, container="k3", reach=reach, deep=True)
    script = compose((probe.ask for probe in questions(scope)), nonce="n" * 32)
    assert len(script.encode()) < LIMIT_BYTES * 0.8


def test_without_a_scope_nothing_of_a_deployment_is_asked() -> None:
    names = {probe.name for probe in questions(Scope())}
    assert not {"model", "image", "inside", "etcd", "nats"} & names


def test_the_inventory_corrects_what_a_device_is_for() -> None:
    device = Hca("mlx5_0", Purpose.COMPUTE, state="ACTIVE", bus_id="0000:18:00.0")
    facts = Facts({InfiniBand: Known(InfiniBand((device,)), "seen")})
    host = Host("h", Login("h"), knobs={"storage_nics": "0000:18, 0000:19"})
    found = corrected(facts, host)[InfiniBand]
    assert isinstance(found, Known)
    assert found.value.devices[0].purpose is Purpose.STORAGE
    assert corrected(facts, Host("h", Login("h"))) == facts
