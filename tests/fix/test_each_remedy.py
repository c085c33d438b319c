"""Every remedy starts from its fault, ends with its own check passing, is done, and is undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.core.outcome import Ended
from bringup.core.rules import Finding, Level, Status
from bringup.remedies.table import HOLD, REMEDIES

from ..fleet.yard import FleetHost, Yard
from .bench import Bench
from .faults import ELSEWHERE, FAULTS, SCONTROL, Fault
from .test_provision_fix import desk_for

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-remedies")]


def test_every_remedy_has_a_fault() -> None:
    proven = {fault.finding for fault in FAULTS} | set(ELSEWHERE)
    assert {row.finding for row in REMEDIES} == proven


@pytest.mark.parametrize(("finding", "file"), ELSEWHERE.items())
def test_a_remedy_proven_elsewhere_is_named_there(finding: str, file: str) -> None:
    assert finding in Path(__file__).with_name(file).read_text()


def found(ended: Ended, id_: str) -> Finding:
    assert ended.plan is not None, ended.error
    return next(f for f in ended.plan.findings if f.id == id_)


def told(finding: Finding) -> str:
    return f"{finding.status.value}: {' '.join(finding.evidence)}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.finding}: {fault.about}")
def test_a_remedy_ends_its_fault_has_nothing_to_do_then_and_is_undone(
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

    undone = bench.undo(to=bench.desk.receipts()[0])
    assert undone.ended.error is None, undone.ended.error
    was = found(bench.provision(fault.finding, check=True), id_)
    assert was.status.value == (fault.undone or fault.before), told(was)


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
