"""Every remedy starts from its fault, ends with its own check passing, and is then done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bringup.core.event import ignore
from bringup.core.fixes import Choice, Risk
from bringup.core.outcome import Ended
from bringup.core.rules import Finding, Level, Status
from bringup.flow import provision
from bringup.flow_open import Choice as Meant
from bringup.flow_open import choose, deployments_for, read_inventory, tools_for
from bringup.flow_types import Order
from bringup.remedies.table import HOLD, REMEDIES

from ..fleet.yard import FleetHost, Yard
from .faults import ELSEWHERE, FAULTS, SCONTROL, Fault
from .hardware import clothe, driver_only
from .test_driver_only import MODEL
from .test_provision_fix import Desk, desk_for

pytestmark = [pytest.mark.root, pytest.mark.slow]


def test_every_remedy_has_a_fault() -> None:
    proven = {fault.finding for fault in FAULTS} | set(ELSEWHERE)
    assert {row.finding for row in REMEDIES} == proven


@pytest.mark.parametrize(("finding", "file"), ELSEWHERE.items())
def test_a_remedy_proven_elsewhere_is_named_there(finding: str, file: str) -> None:
    assert finding in Path(__file__).with_name(file).read_text()


@pytest.fixture(scope="module")
def gpu_host(yard: Yard, bare: Path) -> Iterator[FleetHost]:
    """Eight B300 with their driver; each fault sets up what it needs."""
    with yard.hosts(1, init="systemd", over=bare) as (host,):
        host.exec("apt-get", "-q", "-y", "install", "nvidia-driver-580-open")
        clothe(host, driver_only())
        host.exec("sh", "-c", MODEL)
        yield host


@dataclass(frozen=True)
class Bench:
    """A desk whose verbs run in this process."""

    desk: Desk

    def provision(self, *only: str, check: bool = False, fixing: bool = True) -> Ended:
        folder = self.desk.folder
        meant = Meant(
            str(folder / "inventory"), (self.desk.host.name,), state=str(folder / "state"),
            known_hosts=str(self.desk.yard.known_hosts),
        )  # fmt: skip
        known = read_inventory(meant.inventory)
        hosts = choose(known, meant)
        served = deployments_for(known, hosts, "")
        fix = Choice(only, Risk.SERVICE) if fixing else None
        order = Order(known, hosts, served, check=check, fix=fix)
        with tools_for(known, meant, ignore) as tools:
            (ended,) = provision(tools, order)
        return ended


def found(ended: Ended, id_: str) -> Finding:
    assert ended.plan is not None, ended.error
    return next(f for f in ended.plan.findings if f.id == id_)


def told(finding: Finding) -> str:
    return f"{finding.status.value}: {' '.join(finding.evidence)}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.finding}: {fault.about}")
def test_a_remedy_ends_its_fault_and_then_has_nothing_to_do(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path, fault: Fault
) -> None:
    text = fault.deployment.replace("HOST", gpu_host.name)
    bench = Bench(desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300", deployment=text))
    gpu_host.exec("env", f"SCONTROL={SCONTROL}", "sh", "-c", fault.script)

    planned = bench.provision(fault.finding, check=True)
    id_ = fault.told_as or fault.finding
    seen = found(planned, id_)
    assert seen.status.value == fault.before, told(seen)
    assert [fix.withheld for fix in planned.fixes if fix.finding.id == id_] == [""]

    fixed = bench.provision(fault.finding)
    assert fixed.error is None, fixed.error
    assert fixed.rounds, "the first plan has changes"
    now = found(fixed, fault.finding)
    if fault.after == "pass or note":
        assert now.status is Status.PASS or now.level is Level.NOTE, told(now)
    else:
        assert now.status.value == fault.after, told(now)
    if fault.proof:
        gpu_host.exec("sh", "-c", fault.proof)

    again = bench.provision(fault.finding)
    assert [p.step.id for one in again.rounds if one.plan for p in one.plan.changes] == []


def test_a_toolkit_that_is_installed_brings_flashinfer_back_in_the_same_run(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path
) -> None:
    (fault,) = [one for one in FAULTS if one.finding == "JIT-01"]
    text = fault.deployment.replace("HOST", gpu_host.name)
    desk = desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300", deployment=text)
    gpu_host.exec("sh", "-c", fault.script)
    before = Bench(desk).provision(check=True, fixing=False)
    assert decided(before)["attention_backend"] == "triton"

    done = desk.run("provision", "--fix-only", "JIT-01")
    said = " ".join(done.stdout.split())
    assert "vllm-without-nvcc nvcc installed: FlashInfer again" in said, done.stdout + done.stderr
    assert "(no more: attention_backend triton" in said
    after = Bench(desk).provision(check=True, fixing=False)
    assert decided(after).get("attention_backend") != "triton"


def decided(ended: Ended) -> dict[str, object]:
    assert ended.plan is not None, ended.error
    return {decision.knob: decision.value for decision in ended.plan.decisions}


def test_the_drivers_packages_are_held_beside_a_fix_and_then_nothing_is_left(
    gpu_host: FleetHost, yard: Yard, tmp_path: Path
) -> None:
    (fault,) = [one for one in FAULTS if one.finding == "FAB-03"]
    bench = Bench(desk_for(tmp_path, gpu_host, yard, gpu_count=8, kind="b300"))
    gpu_host.exec("sh", "-c", f"{fault.script}; apt-mark unhold nvidia-driver-580-open")
    fixed = bench.provision("FAB-03", HOLD)
    assert found(fixed, "FAB-03").status is Status.PASS
    held = set(gpu_host.text("apt-mark", "showhold").split())
    assert held >= {"nvidia-driver-580-open", "libnvidia-compute-580", "nvidia-fabricmanager"}
    assert bench.provision("FAB-03", HOLD).rounds == ()
