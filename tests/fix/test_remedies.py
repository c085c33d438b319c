"""From findings to fixes: what is taken, what is left to a person, and why. Pure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.fixes import Choice, Fix, Risk
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.rules import Finding, Level, Status, World, judge
from bringup.decide import TOLD_BY
from bringup.flow.fix import cleared
from bringup.probes.access import Access
from bringup.probes.container import ContainerEngine, ContainerToolkit, DaemonConfig
from bringup.probes.containers import Container, Containers
from bringup.probes.driver import Driver
from bringup.probes.fabric import FabricManager
from bringup.probes.identity import Identity
from bringup.probes.kernel import Modules
from bringup.probes.slurm import GpuOwner, GpuOwners, Job, Slurm, SlurmNode
from bringup.probes.system import Processors
from bringup.probes.toolkit import Nvcc
from bringup.remedies.gpu import package_of_manager
from bringup.remedies.table import REMEDIES, fixes_of
from bringup.rules import CHECKS
from bringup.steps.command import command_step

from ..rules.situations import B300, EIGHT, PAIR, world

UBUNTU = Identity("h", "ubuntu", "24.04", kernel="6.8.0")
ROCKY = Identity("h", "rocky", "9.4", kernel="5.14.0")
DOCKER = ContainerEngine("docker", "28.0", ("runc",), cgroup_driver="cgroupfs",
                         logging_driver="json-file")  # fmt: skip
DRIVER = Driver(loaded=Known("580.95.05"))
CTK = ContainerToolkit("1.18.0")
BUSY = Containers((Container("trainer", state="running", gpu_request="gpus"),))
NONE = Containers(())
NO_CONFIG = {DaemonConfig: Absent("no /etc/docker/daemon.json")}
SLOW = Processors(8, 8, governors=("powersave",))


def fixes(of: World, *only: str, level: Risk = Risk.SAFE) -> dict[str, Fix]:
    found = fixes_of(of, judge(CHECKS, of), Choice(only, level))
    return {fix.finding.id: fix for fix in found}


def ids(fix: Fix) -> list[str]:
    return [step.id for step in fix.steps]


def test_every_remedy_names_a_check() -> None:
    assert {row.finding for row in REMEDIES} <= {row.id for row in CHECKS}


def test_a_remedy_hears_of_the_rules_that_tell_its_finding_where_something_is_to_run() -> None:
    told_as = {row.finding: row.told_as for row in REMEDIES}
    hidden = {check: rules for check, rules in TOLD_BY.items() if check in told_as}
    assert {check: told_as[check] for check in hidden} == hidden


@pytest.mark.parametrize(
    ("identity", "wanted"),
    [(UBUNTU, ["package:docker.io", "service:docker"]), (ROCKY, ["package:podman"])],
)
def test_an_absent_engine_is_installed_by_the_hosts_own_manager(
    identity: Identity, wanted: list[str]
) -> None:
    of = world(identity, absent={ContainerEngine: Absent("no docker")}, pair=True)
    assert ids(fixes(of)["CTR-01"]) == wanted


def test_an_unknown_system_gets_no_package() -> None:
    of = world(absent={ContainerEngine: Absent("no docker")}, pair=True)
    assert not fixes(of)["CTR-01"].is_taken


def test_what_nobody_could_look_at_is_not_fixed() -> None:
    of = world(UBUNTU, absent={ContainerEngine: Unknown("timed out")}, pair=True)
    assert "CTR-01" not in fixes(of)


def test_what_nobody_could_look_at_is_told_where_it_was_named() -> None:
    of = world(UBUNTU, DOCKER, absent={DaemonConfig: Unknown("daemon.json is no JSON")})
    fix = fixes(of, "CTR-09", level=Risk.SERVICE)["CTR-09"]
    assert (fix.is_taken, fix.withheld) == (False, "not fixed: unknown: daemon.json is no JSON")


def test_a_login_without_access_is_put_into_the_group() -> None:
    refused = Unknown("permission denied")
    of = world(UBUNTU, Access("deploy", 1000), absent={ContainerEngine: refused}, pair=True)
    assert ids(fixes(of)["CTR-01"]) == ["member:deploy:docker"]


def test_logs_are_limited_only_where_a_restart_is_allowed() -> None:
    of = world(UBUNTU, DOCKER, NONE, CTK, absent=NO_CONFIG)
    assert fixes(of)["CTR-09"].withheld == "it restarts a service"
    assert fixes(of, level=Risk.SERVICE)["CTR-09"].is_taken


def test_docker_is_not_restarted_under_a_container_that_runs() -> None:
    of = world(UBUNTU, DOCKER, BUSY, CTK, absent=NO_CONFIG)
    fix = fixes(of, "CTR-09", level=Risk.SERVICE)["CTR-09"]
    assert not fix.is_taken
    assert "would end trainer" in fix.withheld


def test_a_reload_that_would_take_gpus_away_is_withheld_until_devices_are_linked() -> None:
    systemd = ContainerEngine("docker", "28.0", ("runc", "nvidia"), cgroup_driver="systemd")
    of = world(
        UBUNTU, systemd, BUSY, EIGHT, CTK, DRIVER, Processors(8, 8, governors=("powersave",))
    )
    found = fixes(of)
    assert found["CTR-05"].is_taken
    assert found["OS-05"].withheld.startswith("CTR-05")
    assert list(found).index("CTR-05") < list(found).index("OS-05")


def test_the_runtime_is_offered_without_a_restart() -> None:
    of = world(UBUNTU, DOCKER, EIGHT, CTK, BUSY)
    fix = fixes(of)["CTR-03"]
    assert ids(fix) == ["file:/etc/docker/daemon.json", "command:docker-runtime"]
    assert fix.is_taken


@pytest.mark.parametrize(
    ("driver", "package"),
    [("570.133.20", "nvidia-fabricmanager-570"), ("580.95.05", "nvidia-fabricmanager")],
)
def test_fabric_managers_package_follows_the_branch(driver: str, package: str) -> None:
    assert package_of_manager(driver) == package


def test_an_absent_fabric_manager_comes_at_the_drivers_version_and_is_held() -> None:
    of = world(UBUNTU, DRIVER, EIGHT, kind=B300, absent={FabricManager: Absent("no unit")})
    steps = {step.id: step.wanted for step in fixes(of)["FAB-02"].steps}
    assert steps == {
        "package:nvlsm": "installed",
        "package:nvidia-fabricmanager": "installed 580.95.05 held",
        "service:nvidia-fabricmanager": "enabled active",
    }


@pytest.mark.parametrize(
    ("owners", "withheld"),
    [
        (GpuOwners((GpuOwner(7, "python"),)), "needs a drained host: python (7) on the GPUs"),
        (GpuOwners((), is_whole=False), "who uses the GPUs is not known: needs a drained host"),
        (GpuOwners(()), ""),
    ],
)
def test_another_fabric_manager_waits_for_idle_gpus(owners: GpuOwners, withheld: str) -> None:
    manager = FabricManager("active", version=Known("570.1"), package="570.1-1")
    of = world(UBUNTU, DRIVER, EIGHT, manager, owners, kind=B300)
    assert fixes(of, level=Risk.SERVICE)["FAB-03"].withheld == withheld


def test_a_module_that_this_kernel_lacks_is_not_loaded() -> None:
    modules = Modules(("mlx5_core",), missing=("mlx5_ib", "ib_umad"),
                      installed={"mlx5_ib": True, "ib_umad": False})  # fmt: skip
    manager = FabricManager("active", version=Known("580.95.05"), nvlsm=True, ibstat=True)
    of = world(UBUNTU, DRIVER, EIGHT, manager, modules, kind=B300)
    assert ids(fixes(of)["FAB-04"]) == [
        "file:/etc/modules-load.d/bringup-mlx5_ib.conf", "module:mlx5_ib",
    ]  # fmt: skip


@pytest.mark.parametrize(("capability", "package"), [("10.0", "12-8"), ("10.3", "12-9")])
def test_the_toolkit_fits_the_gpus(capability: str, package: str) -> None:
    gpus = replace(EIGHT, gpus=tuple(replace(g, compute_capability=capability) for g in EIGHT.gpus))
    bare = replace(PAIR, in_container=False)
    of = world(UBUNTU, DRIVER, gpus, pair=True, deployment=bare, absent={Nvcc: Absent("no nvcc")})
    assert ids(fixes(of)["JIT-01"]) == [f"package:cuda-toolkit-{package}"]
    assert fixes(of)["JIT-01"].is_taken


def test_a_note_is_not_worth_a_toolkit_unless_named() -> None:
    of = world(UBUNTU, DRIVER, EIGHT, kind=B300, absent={Nvcc: Absent("no nvcc")})
    assert "JIT-01" not in fixes(of)
    assert "JIT-01" in fixes(of, "JIT-01")


def test_a_host_under_another_root_is_left_to_a_person() -> None:
    of = world(UBUNTU, DOCKER, NONE, CTK)
    of = replace(of, host=replace(of.host, root="/host"))
    assert not any(fix.is_taken for fix in fixes(of, level=Risk.SERVICE).values())


def test_the_drivers_packages_are_held_where_a_driver_runs() -> None:
    assert fixes(world(UBUNTU, DRIVER))["HOLD"].is_taken
    assert "HOLD" not in fixes(world(UBUNTU))
    assert "HOLD" not in fixes(world(UBUNTU, DRIVER), "CTR-01")


def slurm(state: str, *jobs: Job) -> Slurm:
    return Slurm("active", Known(SlurmNode("h", state), f"State={state}"), Known(jobs))


def test_slurm_is_asked_for_a_reservation_only_when_named() -> None:
    of = world(slurm("IDLE"), pair=True)
    assert fixes(of)["SLU-01"].withheld == "it changes what Slurm schedules: name it by --fix-only"
    assert ids(fixes(of, "SLU-01")["SLU-01"]) == ["reservation:h"]
    assert fixes(of, "SLU-01")["SLU-01"].is_taken


def test_a_node_with_jobs_is_drained_by_a_person() -> None:
    of = world(slurm("ALLOCATED", Job("12", "ann", "RUNNING")), pair=True)
    fix = fixes(of, "SLU-01")["SLU-01"]
    assert not fix.is_taken
    assert "job 12 of ann" in fix.withheld


def test_what_other_fixes_may_clear_is_not_left_to_a_person_yet() -> None:
    gpus = replace(EIGHT, gpus=tuple(replace(g, fabric_state="In Progress") for g in EIGHT.gpus))
    of = world(UBUNTU, DRIVER, gpus, kind=B300, absent={FabricManager: Absent("no unit")})
    found = fixes(of)
    assert found["FAB-02"].is_taken
    assert found["FAB-01"].withheld == "looked at again after FAB-02"
    assert found["FAB-01"].commands == ()


def test_only_what_no_fix_of_the_run_clears_blocks_its_plan() -> None:
    def blocking(name: str) -> Finding:
        return Finding(name, name, Status.FAIL, Level.BLOCK, "h1", (), "", "by hand", "")

    done, waits, left = map(blocking, ("FAB-02", "FAB-01", "GPU-01"))
    step = command_step("x", "x", "x", "x", ("x",))
    fixes = (
        Fix(done, "run fabric manager", Risk.SAFE, steps=(step,)),
        Fix(waits, "", Risk.DRAIN, withheld="looked at again", after=("FAB-02",)),
        Fix(left, "", Risk.DRAIN, withheld="no remedy", commands=("by hand",)),
    )  # fmt: skip
    told = {f.id: (f.level, f.remedy) for f in cleared((done, waits, left), fixes)}
    assert told == {
        "FAB-02": (Level.WARN, "--fix does it: run fabric manager"),
        "FAB-01": (Level.WARN, "--fix looks again after FAB-02"),
        "GPU-01": (Level.BLOCK, "by hand"),
    }


def test_a_person_is_told_to_begin_with_boards_and_driver() -> None:
    bare = Driver(loaded=Absent("no module"), uvm_node=False)
    of = world(UBUNTU, bare, kind=B300, absent={FabricManager: Absent("no unit")})
    left = [id_ for id_, fix in fixes(of).items() if not fix.is_taken]
    assert left.index("GPU-02") < left.index("GPU-07")
