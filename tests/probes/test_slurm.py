"""Slurm beside a worker: node state, jobs, hooks that would hurt, hidden GPUs, GPU owners."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.facts import Probe
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.script import Section
from bringup.probes import slurm, slurm_hooks
from bringup.probes.slurm import GpuOwner, Job, Slurm, SlurmNode
from bringup.probes.slurm_hooks import SlurmHooks
from bringup.rules.checks_slurm import KILLS

from .asking import SHELLS, ask


def section(text: str, rc: int = 0) -> Section:
    return Section("x", rc, text)


@pytest.mark.parametrize("probe", [*slurm.PROBES, slurm_hooks.PROBE], ids=lambda probe: probe.name)
@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n\0:=|")))
def test_garbage_is_unknown(probe: Probe[object], text: str) -> None:
    assert isinstance(probe.parse(section(text)), Unknown)


NODE = (
    "NodeName=b300-04 Arch=x86_64 CoresPerSocket=56 CPUAlloc=0 CPUTot=224 Gres=gpu:b300:8(S:0-1) "
    "OS=Linux 6.8.0-90-generic #91-Ubuntu SMP State=IDLE+DRAIN ThreadsPerCore=2 AllocTRES= "
    "Reason=serving K3, ticket 4711 [root@2026-01-13T08:00:00]"
)
EPILOG = """\
#!/bin/sh
# kill nothing here
nvidia-smi pmon -c 1 | awk '{ print $2 }' | xargs -r kill -9
echo 1 > /proc/sys/vm/drop_caches
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host with Slurm, its tools as scripts that print what the real ones do."""
    for name, text in {
        "usr/bin/scontrol": f"#!/bin/sh\necho '{NODE}'\n",
        "usr/bin/squeue": "#!/bin/sh\necho 'job|812|ann|RUNNING|gres/gpu:2'\n",
        "usr/bin/systemctl": "#!/bin/sh\nprintf 'LoadState=loaded\\nActiveState=active\\n'\n",
        "proc/sys/kernel/hostname": "b300-04.example\n",
        "etc/slurm/slurm.conf": "Prolog=/etc/slurm/prolog.sh\n Epilog = epilog.sh # ours\n"
        "HealthCheckProgram=/usr/sbin/nhc\n",
        "etc/slurm/epilog.sh": "#!/bin/sh\nrun-parts epilog.d\n",
        "etc/slurm/epilog.d/50-exclusive-gpu": EPILOG,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_node_its_jobs_and_its_hooks_are_read(host: Path, shell: tuple[str, ...]) -> None:
    facts = ask(slurm.PROBES[0], slurm_hooks.PROBE, root=str(host), shell=shell)
    found = facts[Slurm]
    assert isinstance(found, Known)
    assert found.value.daemon == "active"
    node = found.value.node
    assert isinstance(node, Known)
    assert node.value == SlurmNode(
        "b300-04", "IDLE+DRAIN", "serving K3, ticket 4711 [root@2026-01-13T08:00:00]",
        "gpu:b300:8(S:0-1)",
    )  # fmt: skip
    assert isinstance(found.value.jobs, Known)
    assert found.value.jobs.value == (Job("812", "ann", "RUNNING", "gres/gpu:2"),)
    hooks = facts[SlurmHooks]
    assert isinstance(hooks, Known)
    assert hooks.value.scripts == ("/etc/slurm/epilog.sh", "/etc/slurm/epilog.d/50-exclusive-gpu")
    assert [(d.line, d.text[:9]) for d in hooks.value.dangers] == [
        (3, "nvidia-sm"),
        (4, "echo 1 > "),
    ]
    assert hooks.value.health == "/usr/sbin/nhc"


def test_a_host_without_slurm_surely_has_none(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    facts = ask(slurm.PROBES[0], slurm_hooks.PROBE, root=str(tmp_path))
    assert isinstance(facts[Slurm], Absent)
    assert isinstance(facts[SlurmHooks], Absent)


def test_a_node_that_the_controller_does_not_know_is_absent() -> None:
    assert isinstance(slurm.node_of(1, "Node b300-04 not found"), Absent)
    assert isinstance(slurm.node_of(1, "slurm_load_node error: Unable to contact"), Unknown)


@pytest.mark.parametrize(
    ("text", "hides"),
    [
        ("DevicePolicy=auto\n", False),
        ("DevicePolicy=auto\nDeviceAllow=char-pts rw\nDeviceAllow=/dev/null rw\n", True),
        ("DevicePolicy=closed\n", True),
        ("DevicePolicy=closed\nDeviceAllow=char-nvidia rw\n", False),
    ],
)
def test_hidden_gpus_are_seen_from_the_unit(text: str, hides: bool) -> None:
    found = slurm.parse_ssh(section(text))
    assert isinstance(found, Known)
    assert found.value.hides_gpus is hides


@pytest.mark.parametrize(
    ("cgroup", "place"),
    [
        ("/system.slice/slurmstepd.scope/job_812/step_0", "Slurm job 812"),
        ("/system.slice/docker-3fa1b2c3d4e5f60718293a4b.scope", "container 3fa1b2c3d4e5"),
        ("/docker/3fa1b2c3d4e5f60718293a4b", "container 3fa1b2c3d4e5"),
        ("/user.slice/user-1000.slice/session-3.scope", "user ann"),
    ],
)
def test_a_process_on_a_gpu_has_an_owner(cgroup: str, place: str) -> None:
    assert GpuOwner(1, "python3", "ann", cgroup).place == place


HOOK_LINES = (
    ("pkill -9 -u $SLURM_JOB_USER", True),
    ("killall -u $SLURM_JOB_USER", True),
    ("nvidia-smi pmon -c 1 | awk '{print $2}'", True),
    ("nvidia-smi --query-compute-apps=pid --format=csv | xargs kill", True),
    ("nvidia-smi -i 0 -r", True),
    ("nvidia-smi --gpu-reset -i 0", True),
    ("nvidia-smi -mig 0", True),
    ("docker rm -f $(docker ps -aq)", True),
    ("fuser -k /dev/nvidia0", True),
    ("loginctl terminate-user $SLURM_JOB_USER", True),
    ("find /sys/fs/cgroup -name 'job_*' -exec rmdir {} +", True),
    ("echo 1 > /sys/fs/cgroup/x/cgroup.kill", True),
    ("modprobe -r nvidia_uvm", True),
    ("systemctl restart nvidia-persistenced", True),
    ("kill -0 $pid", False),
    ("echo 3 > /proc/sys/vm/drop_caches", False),
    ("rm -rf /dev/shm/$USER", False),
    ("cpupower frequency-set -g powersave", False),
    ("ipcrm -a", False),
)


@pytest.mark.parametrize(("line", "kills"), HOOK_LINES)
def test_lines_of_a_hook_are_told_and_those_that_kill_are_known(
    host: Path, line: str, kills: bool
) -> None:
    (host / "etc/slurm/epilog.d/50-exclusive-gpu").write_text(f"#!/bin/sh\n{line}\n")
    hooks = ask(slurm_hooks.PROBE, root=str(host))[SlurmHooks]
    assert isinstance(hooks, Known)
    assert [danger.text for danger in hooks.value.dangers] == [line]
    assert bool(KILLS.search(line)) is kills


def test_a_script_that_a_hook_calls_is_read_too(host: Path) -> None:
    called = host / "opt/site/clean.sh"
    called.parent.mkdir(parents=True)
    called.write_text("#!/bin/sh\npkill -9 -u ann\n")
    (host / "etc/slurm/epilog.sh").write_text("#!/bin/sh\n/opt/site/clean.sh --now\n")
    hooks = ask(slurm_hooks.PROBE, root=str(host))[SlurmHooks]
    assert isinstance(hooks, Known)
    assert ("/opt/site/clean.sh", 2) in [(d.file, d.line) for d in hooks.value.dangers]
